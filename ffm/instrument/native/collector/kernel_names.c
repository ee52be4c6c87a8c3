#include "kernel_names.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "kernel_name.h"
#include "sink.h"

/* Distinct kernels; the names of more are not recorded. */
enum { KERNELS = 1 << 13, LONGEST = 1 << 12 };

static struct {
    pthread_mutex_t lock;
    uint64_t handles[2 * KERNELS]; /* a hash table with open addressing; 0 is a free place */
    uint32_t count;
    ffm_stream records;
} known = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The place of a handle, or the free one where it belongs. */
static uint64_t *place_of(uint64_t handle)
{
    for (uint64_t place = handle * 0x9E3779B97F4A7C15u >> 32;; place++) {
        uint64_t *found = &known.handles[place % (2 * KERNELS)];
        const uint64_t there = __atomic_load_n(found, __ATOMIC_RELAXED);
        if (there == handle || there == 0)
            return found;
    }
}

/* Locked. */
static void record(uint64_t handle, uint64_t time)
{
    const char *name = ffm_name_of_kernel(handle);
    if (name == NULL)
        return;
    const size_t length = strnlen(name, LONGEST), bytes = sizeof(ffm_kernel_name) + ((length + 7) & ~(size_t)7);
    ffm_kernel_name *out = ffm_sink_reserve(&known.records, FFM_CHUNK_KERNELS, 0, bytes);
    if (out == NULL)
        return;
    *out = (ffm_kernel_name){.time = time, .handle = handle, .bytes = (uint32_t)length};
    memcpy(out + 1, name, length);
    ffm_sink_commit(&known.records, bytes);
}

static void forget(void)
{
    pthread_mutex_lock(&known.lock);
    for (uint32_t i = 0; i < 2 * KERNELS; i++)
        __atomic_store_n(&known.handles[i], 0, __ATOMIC_RELAXED);
    known.count = 0;
    pthread_mutex_unlock(&known.lock);
}

/* Asked at each launch, without the lock. An answer that is out of date does no harm: it is looked up again under the
 * lock. */
static bool is_known(uint64_t handle)
{
    return __atomic_load_n(place_of(handle), __ATOMIC_RELAXED) == handle;
}

void ffm_kernel_names_note(const ffm_function *function, const ffm_operation *operation)
{
    if (function->effect == FFM_EFFECT_UNLOAD_CODE)
        forget(); /* other kernels can get the same handles */
    if (function->effect != FFM_EFFECT_LAUNCH_KERNEL || operation->handle == 0 || operation->result != 0 ||
        is_known(operation->handle))
        return;
    pthread_mutex_lock(&known.lock);
    uint64_t *place = place_of(operation->handle);
    if (*place == 0 && known.count < KERNELS) {
        known.count++;
        record(operation->handle, operation->start);
        __atomic_store_n(place, operation->handle, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&known.lock);
}

void ffm_kernel_names_after_fork(void)
{
    pthread_mutex_init(&known.lock, NULL);
    ffm_sink_release(&known.records);
    known.records = (ffm_stream){0};
    forget();
}
