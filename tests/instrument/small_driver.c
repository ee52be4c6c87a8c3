/* A driver of one thread that runs host functions, just enough for the wait-function probe. Macros choose its shape:
 * SPIN                the wait function polls instead of sleeping
 * INLINED             cuStreamSynchronize has its own copy of the wait
 * ALONE               every call has its own copy of the wait
 * LAUNCH_ENTERS       enqueueing enters the wait function too
 * FREE_DOES_NOT_WAIT  cuMemFree returns at once
 * NO_DEVICE           cuInit fails
 * NEVER_RETURNS       cuCtxSynchronize does not notice that the work is done
 * SHARED_SLEEP        the wait function sleeps in a function that enqueueing enters too
 * COLD                the wait happens in a split-off cold part of the wait function
 * NAPS                the wait function sleeps for a moment, again and again, in a function of its own
 * CRASHES             cuMemFree ends the process
 * NO_HOST_FUNCTION    cuLaunchHostFunc fails, cuStreamWaitValue32_v2 works
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))
#define INTERNAL __attribute__((noinline, visibility("hidden")))
enum { QUEUE = 4096 };

typedef void (*host_function)(void *);
typedef struct {
    host_function function;
    void *argument;
    volatile uint32_t *value;
    uint32_t expected;
} operation;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static operation queue[QUEUE];
static atomic_ulong submitted, completed;

static void *worker(void *unused)
{
    for (;;) {
        pthread_mutex_lock(&lock);
        while (completed == submitted)
            pthread_cond_wait(&changed, &lock);
        operation next = queue[completed % QUEUE];
        pthread_mutex_unlock(&lock);
        if (next.function)
            next.function(next.argument);
        while (next.value && *next.value < next.expected)
            usleep(200);
        pthread_mutex_lock(&lock);
        completed++;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

INTERNAL void sleep_until_changed(int may_sleep)
{
    if (may_sleep)
        pthread_cond_wait(&changed, &lock);
    __asm__ volatile("" ::: "memory");
}

INTERNAL void nap(void)
{
    usleep(2000);
    __asm__ volatile("" ::: "memory");
}

static inline __attribute__((always_inline)) void wait_here(unsigned long target)
{
#if defined(SPIN)
    while (completed < target)
        __builtin_ia32_pause();
#elif defined(NAPS)
    while (completed < target)
        nap();
#else
    pthread_mutex_lock(&lock);
    while (completed < target)
#ifdef SHARED_SLEEP
        sleep_until_changed(1);
#else
        pthread_cond_wait(&changed, &lock);
#endif
    pthread_mutex_unlock(&lock);
#endif
    __asm__ volatile("" ::: "memory");
}

#ifdef COLD
__attribute__((cold)) INTERNAL void note_wait(void)
{
    __asm__ volatile("" ::: "memory");
}
#endif

INTERNAL void internal_wait(unsigned long target)
{
#ifdef COLD
    /* Makes the hot part set up the frame. What calls a cold function is cold. */
    volatile unsigned long kept[8];
    kept[0] = target;
    if (completed >= kept[0])
        return;
    note_wait();
#endif
    wait_here(target);
    __asm__ volatile("" ::: "memory");
}

#ifdef ALONE
static inline __attribute__((always_inline)) int wait_for_context(void)
{
    wait_here(submitted);
    return 0;
}
#else
INTERNAL int wait_for_context(void)
{
    internal_wait(submitted);
    return 0;
}
#endif

INTERNAL int enqueue(operation item)
{
#ifdef LAUNCH_ENTERS
    internal_wait(0);
#endif
#ifdef SHARED_SLEEP
    sleep_until_changed(0);
#endif
    pthread_mutex_lock(&lock);
    queue[submitted % QUEUE] = item;
    submitted++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return 0;
}

static int enqueue_nothing(void)
{
    return enqueue((operation){0});
}

static int init(unsigned flags)
{
    pthread_t thread;
    (void)flags;
#ifdef NO_DEVICE
    int const result = 100;
#else
    int const result = 0;
#endif
    return result ? result : pthread_create(&thread, NULL, worker, NULL);
}

static int get_device(int *device, int ordinal)
{
    *device = ordinal;
    return 0;
}

static int make_handle(void **handle)
{
    static char something;
    *handle = &something;
    return 0;
}

static int allocate(void **address, size_t bytes)
{
    *address = malloc(bytes);
    return *address ? 0 : 2;
}

static int free_memory(void *address)
{
#ifdef CRASHES
    abort();
#endif
#ifndef FREE_DOES_NOT_WAIT
    wait_for_context();
#endif
    free(address);
    return 0;
}

static int synchronize_context(void)
{
#ifdef NEVER_RETURNS
    internal_wait(~0ul);
#endif
    return wait_for_context();
}

static int synchronize_stream(void *stream)
{
    (void)stream;
#ifdef INLINED
    wait_here(submitted);
    return 0;
#else
    return wait_for_context();
#endif
}

static int synchronize_event(void *event)
{
    (void)event;
#ifdef ALONE
    wait_here(submitted);
#else
    internal_wait(submitted);
#endif
    return 0;
}

static int copy_to_host(void *destination, void *source, size_t bytes)
{
    wait_for_context();
    memcpy(destination, source, bytes);
    return 0;
}

static int launch_host_function(void *stream, host_function function, void *argument)
{
    (void)stream;
#ifdef NO_HOST_FUNCTION
    (void)function, (void)argument;
    return 801; /* CUDA_ERROR_NOT_SUPPORTED */
#else
    return enqueue((operation){.function = function, .argument = argument});
#endif
}

static int wait_value(void *stream, uint32_t *value, uint32_t expected, unsigned flags)
{
    (void)stream, (void)flags;
    return enqueue((operation){.value = value, .expected = expected});
}

/* As in NVIDIA's builds, an export jumps through a slot of a table. */
static struct {
    int (*init)(unsigned);
    int (*get_device)(int *, int);
    int (*make_handle)(void **);
    int (*allocate)(void **, size_t);
    int (*free_memory)(void *);
    int (*synchronize_context)(void);
    int (*synchronize_stream)(void *);
    int (*synchronize_event)(void *);
    int (*copy_to_host)(void *, void *, size_t);
    int (*launch_host_function)(void *, host_function, void *);
    int (*wait_value)(void *, uint32_t *, uint32_t, unsigned);
    int (*enqueue_nothing)(void);
} table = {init,         get_device,           make_handle,        allocate,
           free_memory,  synchronize_context,  synchronize_stream, synchronize_event,
           copy_to_host, launch_host_function, wait_value,         enqueue_nothing};

/* Writable from outside as far as the compiler knows, so that it cannot jump past the slots. */
API void *small_driver_table(void)
{
    return &table;
}

API int cuInit(unsigned flags)
{
    return table.init(flags);
}
API int cuDeviceGet(int *device, int ordinal)
{
    return table.get_device(device, ordinal);
}
API int cuDevicePrimaryCtxRetain(void **context, int device)
{
    (void)device;
    return table.make_handle(context);
}
API int cuCtxSetCurrent(void *context)
{
    (void)context;
    return 0;
}
API int cuStreamCreate(void **stream, unsigned flags)
{
    (void)flags;
    return table.make_handle(stream);
}
API int cuEventCreate(void **event, unsigned flags)
{
    (void)flags;
    return table.make_handle(event);
}
API int cuEventRecord(void *event, void *stream)
{
    (void)event, (void)stream;
    return table.enqueue_nothing();
}
API int cuMemAlloc_v2(void **address, size_t bytes)
{
    return table.allocate(address, bytes);
}
API int cuMemAllocHost_v2(void **address, size_t bytes)
{
    return table.allocate(address, bytes);
}
API int cuMemHostAlloc(void **address, size_t bytes, unsigned flags)
{
    (void)flags;
    return table.allocate(address, bytes);
}
API int cuMemHostGetDevicePointer_v2(void **device, void *host, unsigned flags)
{
    (void)flags;
    *device = host;
    return 0;
}
API int cuMemFree_v2(void *address)
{
    return table.free_memory(address);
}
API int cuCtxSynchronize(void)
{
    return table.synchronize_context();
}
API int cuStreamSynchronize(void *stream)
{
    return table.synchronize_stream(stream);
}
API int cuEventSynchronize(void *event)
{
    return table.synchronize_event(event);
}
API int cuMemcpyDtoH_v2(void *to, void *from, size_t bytes)
{
    return table.copy_to_host(to, from, bytes);
}
API int cuMemcpyHtoDAsync_v2(void)
{
    return table.enqueue_nothing();
}
API int cuMemsetD8Async(void)
{
    return table.enqueue_nothing();
}
API int cuLaunchHostFunc(void *stream, host_function function, void *argument)
{
    return table.launch_host_function(stream, function, argument);
}
API int cuStreamWaitValue32_v2(void *stream, uint32_t *value, uint32_t expected, unsigned flags)
{
    return table.wait_value(stream, value, expected, flags);
}
