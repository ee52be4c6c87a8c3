#include "uploaded_addresses.h"

#include "blocks.h"
#include "device_writes.h"
#include "guarded.h"
#include "peek.h"

enum { HALF = 4 }; /* bytes: on the device, addresses are aligned to that */

static void scan(uint64_t destination, const void *source, uint64_t bytes)
{
    ffm_blocks_scan(source, bytes);
    ffm_device_writes_upload(destination, source, bytes);
}

static void scan_parts(void *opaque)
{
    const ffm_copy *copy = opaque;
    const uint64_t start = copy->source.address, bytes = copy->source.width;
    for (uint64_t at = 0; at < bytes; at += FFM_PART_BYTES)
        ffm_uploaded_addresses_part(copy, start + at,
                                    start + (bytes - at < FFM_PART_BYTES ? bytes : at + FFM_PART_BYTES));
}

static void scan_rows(void *opaque)
{
    const ffm_copy *copy = opaque;
    const ffm_box *box = &copy->source;
    for (uint64_t slice = 0; slice < box->depth; slice++)
        for (uint64_t row = 0; row < box->height; row++) {
            const uint64_t start = box->address + slice * box->slice + row * box->pitch;
            scan(copy->destination.address, (const void *)start, box->width);
        }
}

void ffm_uploaded_addresses_in(const ffm_copy *copy)
{
    ffm_copy readable = *copy;
    const bool in_parts = copy->source.height == 1 && copy->source.depth == 1;
    if (in_parts)
        ffm_peek_begin(&copy->source);
    else
        readable.source = ffm_peek(&copy->source);
    if (!ffm_guarded(in_parts ? scan_parts : scan_rows, &readable, readable.source.address,
                     ffm_box_end(&readable.source)))
        ffm_device_writes_unknown();
    ffm_peek_over();
}

void ffm_uploaded_addresses_part(const ffm_copy *copy, uint64_t start, uint64_t end)
{
    const uint64_t into = start - copy->source.address, before = into > 2 * HALF ? 2 * HALF : 0;
    start -= before;
    scan(copy->destination.address + into - before, ffm_peek_piece(start, end - start), end - start);
}

uint64_t ffm_uploaded_addresses_changes(void)
{
    return ffm_blocks_changes() + ffm_device_writes_added();
}
