#include "contents.h"

#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "contexts.h"
#include "device_code.h"
#include "device_writes.h"
#include "guarded.h"
#include "hashes.h"
#include "late_readback.h"
#include "looks.h"
#include "new_pages.h"
#include "peek.h"
#include "protected_data.h"
#include "readback.h"
#include "uploaded_addresses.h"
#include "waits.h"
#include "watched.h"

enum { REMEMBERED = 1 << 16, ARRIVING = 1 << 12 };

typedef enum { NEITHER, UPLOAD, DOWNLOAD } direction;

/* The last content sent to a destination, or that there was a download to it. */
typedef struct {
    uint64_t destination;
    uint32_t shape;
    ffm_hash hash;
    uint64_t addresses; /* ffm_uploaded_addresses_changes when its addresses were noted */
} sent;

/* A download whose bytes have not arrived yet. */
typedef struct {
    ffm_content content;
    ffm_box box;
    uint64_t stream, issued;
    uint32_t context, site;
    bool done; /* the call returned without an error */
} arriving;

static struct {
    pthread_mutex_t lock;
    sent *table; /* direct mapped by destination and shape; a lost entry costs a no-op verdict, never a wrong one */
    arriving *arriving;
    uint32_t arrivals;
} contents = {.lock = PTHREAD_MUTEX_INITIALIZER};

static direction direction_of(const ffm_function *function, const ffm_copy *copy)
{
    if (function->kind != FFM_KIND_TRANSFER)
        return NEITHER;
    if (function->direction == FFM_DIRECTION_HOST_TO_DEVICE)
        return copy->source.address != 0 ? UPLOAD : NEITHER;
    if (function->direction == FFM_DIRECTION_DEVICE_TO_HOST)
        return copy->destination.address != 0 ? DOWNLOAD : NEITHER;
    if (copy->source.host == copy->destination.host)
        return NEITHER;
    if (copy->source.host)
        return copy->source.address != 0 ? UPLOAD : NEITHER;
    return copy->destination.address != 0 ? DOWNLOAD : NEITHER;
}

/* Locked, and read without the lock. */
static uint32_t one_more(void)
{
    return __atomic_fetch_add(&contents.arrivals, 1, __ATOMIC_RELAXED);
}

static uint32_t one_less(void)
{
    return __atomic_sub_fetch(&contents.arrivals, 1, __ATOMIC_RELAXED);
}

static void record(ffm_thread *thread, const ffm_content *content, uint32_t site)
{
    ffm_pack_record(&thread->contents, FFM_CHUNK_CONTENTS, thread->number, site, content);
}

typedef struct {
    ffm_thread *recorder;
    uint64_t operation, destination;
    uint32_t thread, flags;
    const ffm_copy *scanned; /* an upload whose parts are looked through for addresses while they are in the cache */
} part_context;

static void record_part(void *opaque, uint64_t place, const ffm_hash *hash)
{
    const part_context *context = opaque;
    const ffm_part part = {.operation = context->operation,
                           .destination = context->destination + place * FFM_PART_BYTES,
                           .hash = {hash->low, hash->high},
                           .operation_thread = context->thread,
                           .flags = context->flags};
    ffm_pack_record(&context->recorder->parts, FFM_CHUNK_PARTS, context->recorder->number, context->flags, &part);
    if (context->scanned == NULL)
        return;
    const uint64_t start = context->scanned->source.address + place * FFM_PART_BYTES,
                   last = ffm_box_end(&context->scanned->source);
    ffm_uploaded_addresses_part(context->scanned, start, last - start < FFM_PART_BYTES ? last : start + FFM_PART_BYTES);
}

typedef struct {
    ffm_box box;
    part_context *parts;
    ffm_hash hash;
} hashing;

static void hash_parts(void *opaque)
{
    hashing *wanted = opaque;
    wanted->hash =
        ffm_hash_box_through(&wanted->box, ffm_peek_piece, wanted->parts == NULL ? NULL : record_part, wanted->parts);
}

static bool without_gaps(const ffm_box *box)
{
    return box->height == 1 && box->depth == 1;
}

/* Hash a box of host memory; this does not count as touching what is watched there. False if not all of it can be read:
 * the program gives a size that is too large, which the driver refuses. */
static bool hash_host(const ffm_box *box, part_context *parts, ffm_hash *hash)
{
    hashing wanted = {.box = *box, .parts = parts};
    if (without_gaps(box))
        ffm_peek_begin(box);
    else
        wanted.box = ffm_peek(box);
    const bool whole = ffm_guarded(hash_parts, &wanted, wanted.box.address, ffm_box_end(&wanted.box));
    ffm_peek_over();
    *hash = wanted.hash;
    return whole;
}

/* The entry of a destination, which may hold another one's. Locked. NULL if there is no memory for the table. */
static sent *remembered(uint64_t destination, uint32_t shape)
{
    const uint64_t mixed = (destination ^ (uint64_t)shape << 20) * 0x9E3779B97F4A7C15ULL;
    if (contents.table == NULL)
        contents.table = ffm_new_pages(REMEMBERED * sizeof *contents.table);
    return contents.table == NULL ? NULL : &contents.table[mixed >> 48];
}

/* Whether these bytes were the last ones sent to the destination; if so, sets `addresses` to when their addresses were
 * noted. Records that they are the last ones now. */
static bool sent_before(const ffm_content *content, bool *noted, uint64_t addresses)
{
    bool same = false;
    pthread_mutex_lock(&contents.lock);
    sent *last = remembered(content->destination, content->shape);
    if (last != NULL) {
        ffm_hash hash = {content->hash[0], content->hash[1]};
        same = last->destination == content->destination && last->shape == content->shape &&
               ffm_hash_equal(&last->hash, &hash);
        *noted = *noted || (same && last->addresses == addresses);
        *last = (sent){content->destination, content->shape, hash, addresses};
    }
    pthread_mutex_unlock(&contents.lock);
    return same;
}

/* Whether there was a download to the destination before; only then can another one bring what it holds. Records that
 * there is one now. */
static bool received_before(const ffm_content *content)
{
    const uint32_t shape = ~content->shape; /* apart from what is sent there */
    pthread_mutex_lock(&contents.lock);
    sent *last = remembered(content->destination, shape);
    const bool same = last == NULL || (last->destination == content->destination && last->shape == shape);
    if (last != NULL)
        *last = (sent){.destination = content->destination, .shape = shape};
    pthread_mutex_unlock(&contents.lock);
    return same;
}

/* Whether the destination holds the bytes of the source, which have that hash. False if it cannot be read. */
static bool compare(const ffm_function *function, const ffm_operation *operation, const ffm_copy *copy,
                    const ffm_hash *hash, bool *equal)
{
    ffm_hash there;
    if (without_gaps(&copy->source) && without_gaps(&copy->destination))
        return ffm_readback_compare(function, operation, copy, equal);
    if (!ffm_readback_hash(function, operation, &copy->destination, &there))
        return false;
    *equal = ffm_hash_equal(&there, hash);
    return true;
}

/* Record an upload, and whether its destination contained what it sends, if that is known. */
static void record_upload(ffm_thread *thread, const ffm_late_upload *upload, bool known, bool equal)
{
    ffm_content content = upload->content;
    if (known) {
        content.flags |= FFM_CONTENT_DESTINATION_KNOWN;
        content.destination_hash[0] = equal ? content.hash[0] : ~content.hash[0];
        content.destination_hash[1] = equal ? content.hash[1] : ~content.hash[1];
        ffm_look_found(upload->site, equal);
    }
    record(thread, &content, upload->site);
}

/* Compare with the destination now, or later without making the program wait. The first upload of a site compares at
 * once: it leaves an idle GPU, whose clock is then known (gpu_times.c). */
static void check(const ffm_function *function, const ffm_operation *operation, const ffm_copy *copy,
                  ffm_thread *thread, const ffm_late_upload *upload)
{
    const ffm_hash hash = {upload->content.hash[0], upload->content.hash[1]};
    bool equal = false;
    ffm_late_readback_tell(thread, record_upload);
    const bool plain = without_gaps(&copy->source) && without_gaps(&copy->destination);
    if (plain && ffm_looked(upload->site) && ffm_late_readback_begin(function, operation, copy, upload))
        return;
    const bool known = compare(function, operation, copy, &hash, &equal);
    if (plain && !known && ffm_late_readback_begin(function, operation, copy, upload))
        return;
    record_upload(thread, upload, known, equal);
}

static void before_upload(const ffm_function *function, const ffm_operation *operation, const ffm_copy *copy,
                          ffm_thread *thread)
{
    const ffm_box *source = &copy->source, *destination = &copy->destination;
    if (ffm_watch_in_flight(source->address, ffm_box_end(source))) {
        ffm_device_writes_unknown(); /* the bytes are not there yet: what will be sent is unknown */
        return;
    }
    if (!ffm_protected_data_planned(operation->stack)) {
        ffm_uploaded_addresses_in(copy);
        return;
    }
    const uint64_t bytes = source->width * source->height * source->depth, addresses = ffm_uploaded_addresses_changes();
    /* If a site's bytes usually differ from the destination's, their addresses are noted on the way. */
    bool noted = ffm_look_found_others(operation->stack) && bytes > FFM_PART_BYTES && without_gaps(source) &&
                 without_gaps(destination);
    part_context parts = {.recorder = thread,
                          .operation = thread->operations.stream.written,
                          .destination = destination->address,
                          .thread = thread->number};
    ffm_content content = {.operation = parts.operation,
                           .operation_thread = thread->number,
                           .bytes = bytes,
                           .destination = destination->address,
                           .shape = ffm_hash_shape(destination)};
    ffm_hash hash;
    parts.scanned = noted ? copy : NULL;
    if (!hash_host(source, without_gaps(destination) ? &parts : NULL, &hash))
        return;
    content.hash[0] = hash.low;
    content.hash[1] = hash.high;
    const bool again = sent_before(&content, &noted, addresses);
    if (!noted)
        ffm_uploaded_addresses_in(copy);
    const ffm_late_upload upload = {content, operation->stack};
    if (ffm_look_pays(operation->stack, again))
        check(function, operation, copy, thread, &upload);
    else
        record_upload(thread, &upload, false, false);
}

static void before_download(const ffm_function *function, const ffm_operation *operation, const ffm_copy *copy,
                            const ffm_thread *thread)
{
    const ffm_box *destination = &copy->destination;
    const bool planned = ffm_protected_data_planned(operation->stack);
    arriving download = {.content = {.operation = thread->operations.stream.written,
                                     .operation_thread = thread->number,
                                     .bytes = destination->width * destination->height * destination->depth,
                                     .destination = destination->address,
                                     .shape = ffm_hash_shape(destination),
                                     .flags = FFM_CONTENT_DOWNLOAD,
                                     .written = ffm_device_writes_last(&copy->source)},
                         .box = *destination,
                         .stream = ffm_stream_key(function, operation, thread),
                         .context = ffm_context_recorded(operation),
                         .site = operation->stack};
    ffm_hash there;
    const bool again = planned && received_before(&download.content);
    if (again && !ffm_watch_in_flight(destination->address, ffm_box_end(destination)) &&
        ffm_look_pays(operation->stack, false) && hash_host(destination, NULL, &there)) {
        download.content.destination_hash[0] = there.low;
        download.content.destination_hash[1] = there.high;
        download.content.flags |= FFM_CONTENT_DESTINATION_KNOWN;
    }
    pthread_mutex_lock(&contents.lock);
    if (contents.arriving == NULL)
        contents.arriving = ffm_new_pages(ARRIVING * sizeof *contents.arriving);
    if (contents.arriving != NULL) {
        /* What arrives later in the same place overwrites what arrived before. */
        for (uint32_t i = contents.arrivals; i > 0; i--) {
            const ffm_box *box = &contents.arriving[i - 1].box;
            if (box->address < ffm_box_end(destination) && destination->address < ffm_box_end(box))
                contents.arriving[i - 1] = contents.arriving[one_less()];
        }
        if (planned && contents.arrivals < ARRIVING)
            contents.arriving[one_more()] = download;
    }
    pthread_mutex_unlock(&contents.lock);
}

void ffm_contents_gone(uint64_t start, uint64_t end)
{
    if (__atomic_load_n(&contents.arrivals, __ATOMIC_RELAXED) == 0)
        return;
    pthread_mutex_lock(&contents.lock);
    for (uint32_t i = contents.arrivals; i > 0; i--) {
        const ffm_box *box = &contents.arriving[i - 1].box;
        if (box->address < end && start < ffm_box_end(box))
            contents.arriving[i - 1] = contents.arriving[one_less()];
    }
    pthread_mutex_unlock(&contents.lock);
}

void ffm_contents_stop(void)
{
    ffm_thread *thread = ffm_thread_peek();
    ffm_contents_gone(0, UINT64_MAX);
    if (thread != NULL)
        ffm_late_readback_give_up(thread, record_upload, false);
}

static void load_code(const ffm_function *function, ffm_operation *operation)
{
    const uint64_t variables =
        function->source < 0 ? FFM_CODE_UNKNOWN : ffm_device_code_variables((const void *)operation->source);
    if (variables == 0)
        operation->bytes = FFM_CODE_WITHOUT_VARIABLES;
    if (variables >= sizeof(uint64_t))
        ffm_device_writes_kept();
}

void ffm_contents_before(const ffm_function *function, const uint64_t *arguments, ffm_operation *operation,
                         ffm_thread *thread)
{
    ffm_copy copy;
    if (function->effect == FFM_EFFECT_LOAD_CODE)
        load_code(function, operation);
    ffm_device_writes_before(function, arguments, operation);
    if (ffm_context_ends(function)) {
        ffm_contents_gone(0, UINT64_MAX);
        ffm_late_readback_give_up(thread, record_upload, true);
    }
    for (uint32_t place = 0; ffm_copy_of(function, arguments, operation, place, &copy); place++) {
        direction way = direction_of(function, &copy);
        if (way == UPLOAD)
            before_upload(function, operation, &copy, thread);
        else if (way == DOWNLOAD)
            before_download(function, operation, &copy, thread);
    }
}

static void arrived(arriving *download, ffm_thread *thread)
{
    part_context parts = {.recorder = thread,
                          .operation = download->content.operation,
                          .destination = download->content.destination,
                          .thread = download->content.operation_thread,
                          .flags = FFM_CONTENT_DOWNLOAD};
    ffm_hash hash;
    if (!hash_host(&download->box, without_gaps(&download->box) ? &parts : NULL, &hash))
        return;
    ffm_content *content = &download->content;
    content->hash[0] = hash.low;
    content->hash[1] = hash.high;
    if (content->flags & FFM_CONTENT_DESTINATION_KNOWN) {
        ffm_hash there = {content->destination_hash[0], content->destination_hash[1]};
        ffm_look_found(download->site, ffm_hash_equal(&there, &hash));
    }
    record(thread, content, download->site);
}

/* What the call issued is under way, or was refused. */
static void issued(const ffm_operation *operation, uint64_t number, const ffm_thread *thread)
{
    for (uint32_t i = contents.arrivals; i > 0; i--) {
        arriving *download = &contents.arriving[i - 1];
        if (download->content.operation_thread != thread->number || download->content.operation != number)
            continue;
        download->issued = operation->start;
        download->done = true;
        if (operation->result != 0)
            *download = contents.arriving[one_less()];
    }
}

void ffm_contents_after(const ffm_function *function, const uint64_t *arguments, const ffm_operation *operation,
                        uint64_t number, ffm_thread *thread)
{
    (void)arguments;
    ffm_device_writes_after(function, operation);
    ffm_cover cover;
    const bool waited = ffm_waited(function, operation, thread, &cover);
    if (waited)
        ffm_late_readback_tell(thread, record_upload);
    if (__atomic_load_n(&contents.arrivals, __ATOMIC_RELAXED) == 0)
        return;
    pthread_mutex_lock(&contents.lock);
    if (function->kind == FFM_KIND_TRANSFER)
        issued(operation, number, thread);
    for (uint32_t i = contents.arrivals; waited && i > 0; i--) {
        arriving *download = &contents.arriving[i - 1];
        if (!download->done || !ffm_covers(&cover, download->context, download->stream, download->issued))
            continue;
        arrived(download, thread);
        *download = contents.arriving[one_less()];
    }
    pthread_mutex_unlock(&contents.lock);
}

void ffm_contents_after_fork(void)
{
    pthread_mutex_init(&contents.lock, NULL);
    contents.arrivals = 0;
    ffm_late_readback_after_fork();
    ffm_device_writes_after_fork();
    ffm_peek_after_fork();
}
