#include "uploaded_addresses.h"

#include "blocks.h"
#include "device_writes.h"
#include "guarded.h"
#include "peek.h"

enum { HALF = 4 }; /* bytes: on the device, addresses are aligned to that */

static void scan(uint64_t destination, uint64_t start, uint64_t end)
{
    ffm_blocks_scan((const void *)start, end - start);
    ffm_device_writes_upload(destination, (const void *)start, end - start);
}

static void scan_rows(void *opaque)
{
    const ffm_copy *copy = opaque;
    const ffm_box *box = &copy->source;
    for (uint64_t slice = 0; slice < box->depth; slice++)
        for (uint64_t row = 0; row < box->height; row++) {
            const uint64_t start = box->address + slice * box->slice + row * box->pitch;
            scan(copy->destination.address, start, start + box->width);
        }
}

void ffm_uploaded_addresses_in(const ffm_copy *copy)
{
    ffm_copy readable = {ffm_peek(&copy->source), copy->destination};
    if (!ffm_guarded(scan_rows, &readable, readable.source.address, ffm_box_end(&readable.source)))
        ffm_device_writes_unknown();
    ffm_peek_over();
}

void ffm_uploaded_addresses_part(const ffm_copy *copy, uint64_t start, uint64_t end)
{
    const uint64_t into = start - copy->source.address, before = into > 2 * HALF ? 2 * HALF : 0;
    scan(copy->destination.address + into - before, start - before, end);
}

uint64_t ffm_uploaded_addresses_changes(void)
{
    return ffm_blocks_changes() + ffm_device_writes_added();
}
