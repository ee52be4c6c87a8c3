#include "readback.h"

#include <cuda.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "bindings.h"
#include "captures.h"
#include "clock.h"
#include "guarded.h"
#include "kernel.h"
#include "new_pages.h"
#include "peek.h"

enum { WIDEST_GAPS = 4 }; /* bytes read per byte needed */

typedef int (*copy_function)(uint64_t, uint64_t, uint64_t);
typedef int (*copy_async_function)(uint64_t, uint64_t, uint64_t, uint64_t);
typedef int (*stream_function)(uint64_t);

static struct {
    pthread_mutex_t lock;
    void *scratch;
    uint64_t bytes;
} readback = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool room_for(uint64_t bytes)
{
    if (readback.bytes >= bytes)
        return true;
    if (readback.scratch != NULL)
        munmap(readback.scratch, readback.bytes);
    readback.scratch = ffm_new_pages(bytes);
    readback.bytes = readback.scratch == NULL ? 0 : bytes;
    return readback.bytes != 0;
}

/* How much longer an asynchronous call may take until the work before it is over: a second, once. The program itself
 * does not wait there, and the work may be waiting for what it does next: for a value, a host function, or a kernel
 * that looks at memory. Then the call goes on without a look. */
static const uint64_t PATIENCE_NS = 1000000000;

static bool becomes_idle(uint64_t stream, bool per_thread)
{
    static bool lost_patience;
    const stream_function query = ffm_own_call(FFM_OWN_CALL_QUERY_STREAM, per_thread);
    const uint64_t last = ffm_now() + (lost_patience ? 0 : PATIENCE_NS);
    int answer = query == NULL ? CUDA_ERROR_NOT_FOUND : query(stream);
    while (answer == CUDA_ERROR_NOT_READY && ffm_now() < last) {
        ffm_kernel(SYS_sched_yield, 0, 0, 0, 0);
        answer = query(stream);
    }
    lost_patience |= answer == CUDA_ERROR_NOT_READY;
    return answer == CUDA_SUCCESS;
}

static bool copy_in_order(const ffm_function *function, const ffm_operation *operation, uint64_t from, uint64_t bytes)
{
    bool per_thread = function->per_thread_stream;
    uint64_t to = (uint64_t)readback.scratch;
    if (function->asynchronous) {
        copy_async_function copy = ffm_own_call(FFM_OWN_CALL_DOWNLOAD_LATER, per_thread);
        stream_function wait = ffm_own_call(FFM_OWN_CALL_SYNCHRONIZE_STREAM, per_thread);
        return copy != NULL && wait != NULL && becomes_idle(operation->stream, per_thread) &&
               copy(to, from, bytes, operation->stream) == 0 && wait(operation->stream) == 0;
    }
    copy_function copy = ffm_own_call(FFM_OWN_CALL_DOWNLOAD, per_thread);
    return copy != NULL && copy(to, from, bytes) == 0;
}

/* Pieces of a comparison: most differences are in the first one, and what the copy has written is still in the cache.
 */
enum { FIRST_PIECE = 64 << 10, PIECE = 1 << 20 };

typedef struct {
    const void *one, *other;
    uint64_t bytes;
    bool equal;
} comparison;

static void compare(void *opaque)
{
    comparison *of = opaque;
    of->equal = memcmp(of->one, of->other, of->bytes) == 0;
}

/* Whether the piece in the scratch memory equals that of the program; also false if it cannot be read any more. */
static bool equals(uint64_t start, uint64_t bytes)
{
    const ffm_box piece = {start, bytes, bytes, 1, bytes, 1, true}, readable = ffm_peek(&piece);
    comparison of = {(const void *)readable.address, readback.scratch, bytes, false};
    const bool whole = ffm_guarded(compare, &of, readable.address, readable.address + bytes);
    ffm_peek_over();
    return whole && of.equal;
}

bool ffm_readback_compare(const ffm_function *function, const ffm_operation *operation, const ffm_copy *copy,
                          bool *equal)
{
    const uint64_t from = copy->destination.address, bytes = copy->source.width;
    if (from == 0 || ffm_capturing())
        return false;
    pthread_mutex_lock(&readback.lock);
    bool done = room_for(bytes < PIECE ? bytes : PIECE);
    *equal = true;
    for (uint64_t at = 0, piece = FIRST_PIECE; done && *equal && at < bytes; at += piece, piece = PIECE) {
        if (piece > bytes - at)
            piece = bytes - at;
        done = copy_in_order(function, operation, from + at, piece);
        *equal = done && equals(copy->source.address + at, piece);
    }
    pthread_mutex_unlock(&readback.lock);
    return done;
}

bool ffm_readback_hash(const ffm_function *function, const ffm_operation *operation, const ffm_box *destination,
                       ffm_hash *hash)
{
    uint64_t spread = ffm_box_end(destination) - destination->address;
    if (destination->address == 0 || ffm_capturing() ||
        spread > WIDEST_GAPS * destination->width * destination->height * destination->depth)
        return false;
    pthread_mutex_lock(&readback.lock);
    bool done = room_for(spread) && copy_in_order(function, operation, destination->address, spread);
    if (done) {
        ffm_box copied = *destination;
        copied.address = (uint64_t)readback.scratch;
        *hash = ffm_hash_box(&copied, NULL, NULL);
    }
    pthread_mutex_unlock(&readback.lock);
    return done;
}

void ffm_readback_after_fork(void)
{
    pthread_mutex_init(&readback.lock, NULL);
}
