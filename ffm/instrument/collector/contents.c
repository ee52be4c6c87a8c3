#include "contents.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "calls.h"

enum { REMEMBERED = 1 << 16 };

typedef int (*copy_function)(uint64_t, uint64_t, uint64_t);
typedef int (*copy_async_function)(uint64_t, uint64_t, uint64_t, uint64_t);
typedef int (*stream_function)(uint64_t);

/* The last content sent to a destination. Only a candidate for "the destination holds these bytes already" is worth
 * reading the destination back, which costs as much as the transfer. */
typedef struct {
    uint64_t destination;
    uint64_t bytes;
    XXH128_hash_t hash;
} sent;

static struct {
    pthread_mutex_t lock;
    sent *table; /* direct mapped by destination and size; a lost entry costs a no-op verdict, never a wrong one */
    void *scratch;
    uint64_t scratch_bytes;
} contents = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool plain_upload(const ffm_function *function)
{
    return function->kind == FFM_KIND_TRANSFER && function->direction == FFM_DIRECTION_HOST_TO_DEVICE &&
           function->shape == FFM_SHAPE_PLAIN;
}

static bool plain_download(const ffm_function *function)
{
    return function->kind == FFM_KIND_TRANSFER && function->direction == FFM_DIRECTION_DEVICE_TO_HOST &&
           function->shape == FFM_SHAPE_PLAIN;
}

static sent *entry_for(uint64_t destination, uint64_t bytes)
{
    if (contents.table == NULL) {
        void *pages =
            mmap(NULL, REMEMBERED * sizeof *contents.table, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (pages == MAP_FAILED)
            return NULL;
        contents.table = pages;
    }
    const uint64_t identity[2] = {destination, bytes};
    return &contents.table[XXH3_64bits(identity, sizeof identity) % REMEMBERED];
}

/* The destination's bytes, read back before the copy in the order of its stream; false where that fails. */
static bool hash_destination(const ffm_function *function, const ffm_operation *operation, XXH128_hash_t *hash)
{
    if (contents.scratch_bytes < operation->bytes) {
        if (contents.scratch != NULL)
            munmap(contents.scratch, contents.scratch_bytes);
        contents.scratch_bytes = operation->bytes;
        contents.scratch =
            mmap(NULL, contents.scratch_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (contents.scratch == MAP_FAILED) {
            contents.scratch = NULL;
            contents.scratch_bytes = 0;
            return false;
        }
    }
    bool flavoured = function->per_thread_stream;
    uint64_t scratch = (uint64_t)contents.scratch;
    if (function->asynchronous) {
        copy_async_function copy =
            ffm_call_original_named(flavoured ? "cuMemcpyDtoHAsync_v2_ptsz" : "cuMemcpyDtoHAsync_v2");
        stream_function wait = ffm_call_original_named(flavoured ? "cuStreamSynchronize_ptsz" : "cuStreamSynchronize");
        if (copy == NULL || wait == NULL ||
            copy(scratch, operation->destination, operation->bytes, operation->stream) != 0 ||
            wait(operation->stream) != 0)
            return false;
    } else {
        copy_function copy = ffm_call_original_named(flavoured ? "cuMemcpyDtoH_v2_ptds" : "cuMemcpyDtoH_v2");
        if (copy == NULL || copy(scratch, operation->destination, operation->bytes) != 0)
            return false;
    }
    *hash = XXH3_128bits(contents.scratch, operation->bytes);
    return true;
}

void ffm_contents_before(const ffm_function *function, const ffm_operation *operation, ffm_thread *thread)
{
    thread->content = (ffm_content){.bytes = operation->bytes};
    thread->content_ready = plain_upload(function) && operation->bytes != 0;
    if (!thread->content_ready)
        return;
    XXH128_hash_t hash = XXH3_128bits((const void *)operation->source, operation->bytes);
    thread->content.hash[0] = hash.low64;
    thread->content.hash[1] = hash.high64;
    pthread_mutex_lock(&contents.lock);
    sent *last = entry_for(operation->destination, operation->bytes);
    if (last != NULL) {
        XXH128_hash_t there;
        if (last->destination == operation->destination && last->bytes == operation->bytes &&
            XXH128_isEqual(last->hash, hash) && hash_destination(function, operation, &there)) {
            thread->content.destination_hash[0] = there.low64;
            thread->content.destination_hash[1] = there.high64;
            thread->content.flags |= FFM_CONTENT_DESTINATION_KNOWN;
        }
        *last = (sent){operation->destination, operation->bytes, hash};
    }
    pthread_mutex_unlock(&contents.lock);
}

static void record(ffm_thread *thread, uint64_t number)
{
    ffm_content *out = ffm_sink_reserve(&thread->contents, FFM_CHUNK_CONTENTS, thread->number, sizeof thread->content);
    if (out == NULL)
        return;
    thread->content.operation = number;
    *out = thread->content;
    ffm_sink_commit(&thread->contents, sizeof *out);
}

void ffm_contents_after(const ffm_function *function, const ffm_operation *operation, uint64_t number,
                        ffm_thread *thread)
{
    if (operation->result != 0)
        return;
    /* The bytes of an asynchronous download are not there yet: only its destination is known now. */
    if (plain_download(function) && !function->asynchronous && operation->bytes != 0) {
        XXH128_hash_t hash = XXH3_128bits((const void *)operation->destination, operation->bytes);
        thread->content.hash[0] = hash.low64;
        thread->content.hash[1] = hash.high64;
        thread->content_ready = true;
    }
    if (thread->content_ready)
        record(thread, number);
    thread->content_ready = false;
}
