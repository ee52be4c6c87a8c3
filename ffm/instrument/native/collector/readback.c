#include "readback.h"

#include <pthread.h>
#include <stddef.h>
#include <sys/mman.h>

#include "bindings.h"
#include "captures.h"

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
    readback.scratch = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    readback.bytes = readback.scratch == MAP_FAILED ? 0 : bytes;
    if (readback.bytes == 0)
        readback.scratch = NULL;
    return readback.bytes != 0;
}

static bool copy_in_order(const ffm_function *function, const ffm_operation *operation, uint64_t from, uint64_t bytes)
{
    bool per_thread = function->per_thread_stream;
    uint64_t to = (uint64_t)readback.scratch;
    if (function->asynchronous) {
        copy_async_function copy = ffm_own_call(FFM_OWN_CALL_DOWNLOAD_LATER, per_thread);
        stream_function wait = ffm_own_call(FFM_OWN_CALL_SYNCHRONIZE_STREAM, per_thread);
        return copy != NULL && wait != NULL && copy(to, from, bytes, operation->stream) == 0 &&
               wait(operation->stream) == 0;
    }
    copy_function copy = ffm_own_call(FFM_OWN_CALL_DOWNLOAD, per_thread);
    return copy != NULL && copy(to, from, bytes) == 0;
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
