/* The collector without Frida: calls its wrappers directly, and reads back nothing; the Python side checks the file.
 * Built with AddressSanitizer and UndefinedBehaviorSanitizer by test_native.py. */
#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calls.h"
#include "clock.h"
#include "clock_reads.h"
#include "downloaded_again.h"
#include "foreign.h"
#include "modes.h"
#include "reached_memory.h"
#include "sources_sent_again.h"
#include "stand_in_driver.h"
#include "thread.h"
#include "thread_memory.h"

typedef int (*query)(uint64_t);
typedef int (*allocate)(uint64_t *, size_t);
typedef int (*get_global)(uint64_t *, size_t *, uint64_t, const char *);

enum { BLOCK = 3 * 4096 };

static char device[BLOCK];

static int driver_allocate(uint64_t *address, size_t bytes)
{
    (void)bytes;
    *address = (uint64_t)device;
    return 0;
}

/* A GPU that does nothing until it is released. */
static bool gpu_is_over;

static int driver_query(uint64_t object)
{
    (void)object;
    return gpu_is_over ? 0 : 600; /* CUDA_ERROR_NOT_READY */
}

static int driver_elapsed(float *milliseconds, uint64_t first, uint64_t second)
{
    assert(second == first + 1);
    *milliseconds = 0.25F;
    return 0;
}

/* One managed variable, on its own page. */
static int *variable;

static int driver_global(uint64_t *address, size_t *bytes, uint64_t module, const char *name)
{
    (void)module, (void)name;
    *address = (uint64_t)variable;
    if (bytes != NULL)
        *bytes = sizeof *variable;
    return 0;
}

static int driver_attribute(void *answer, unsigned attribute, uint64_t address)
{
    if (address != (uint64_t)variable)
        return 1; /* CUDA_ERROR_INVALID_VALUE */
    if (attribute == 12)
        *(size_t *)answer = sizeof *variable;
    else
        *(unsigned *)answer = 1;
    return 0;
}

static void *pages(size_t bytes)
{
    void *start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert(start != MAP_FAILED);
    return start;
}

static void *synchronize_often(void *wrapper)
{
    for (int i = 0; i < 5000; i++)
        ((synchronize)wrapper)();
    return NULL;
}

/* A result that is read, one that is overwritten by the next transfer, one that shares its page with other data. */
static void watch_results(download down)
{
    char *host = pages(2 * BLOCK);
    assert(down(host, (uint64_t)device, BLOCK) == 0);
    assert(host[BLOCK - 1] == 7); /* ends the watch */
    assert(down(host, (uint64_t)device, BLOCK) == 0);
    assert(down(host, (uint64_t)device, BLOCK) == 0);
    host[0] = 1;
    char *shared = host + BLOCK + 128;
    assert(down(shared, (uint64_t)device, 64) == 0);
    host[BLOCK] = 3; /* next to the range */
    assert(host[BLOCK] == 3);
    assert(shared[63] == 7);
    munmap(host, 2 * BLOCK);
}

static void watch_source(upload up)
{
    char *host = pages(BLOCK);
    memset(host, 7, BLOCK);
    assert(up((uint64_t)device, host, BLOCK) == 0);
    assert(host[5] == 7); /* reading the source is no use of it */
    host[5] = 8;
    assert(up((uint64_t)device, host, BLOCK) == 0);
    host[5] = 7;
    assert(up((uint64_t)device, host, BLOCK) == 0);
    assert(up((uint64_t)device, host, BLOCK) == 0); /* the device holds these bytes already */
    munmap(host, BLOCK);
}

/* More launches than are timed at once, before anything waits. */
static void launch_often(synchronize sync)
{
    hook("cuEventCreate", (void *)driver_create_event);
    hook("cuEventRecord", (void *)driver_record_event);
    hook("cuEventQuery", (void *)driver_query);
    hook("cuStreamQuery", (void *)driver_query);
    hook("cuEventElapsedTime", (void *)driver_elapsed);
    launch kernel = (launch)hook("cuLaunchKernel", (void *)driver_launch);
    for (int i = 0; i < 3000; i++)
        kernel(1, 0, 0, 0, 0, 0, 0, 0, 0, NULL, NULL);
    gpu_is_over = true;
    sync();
}

/* Threads that call nothing of the driver, and go far down their stacks after the collector was opened. */
static pthread_barrier_t opened;

static __attribute__((noinline)) void stacks_are_known(void)
{
    volatile char large[3 << 20];
    static __thread int variable;
    const uint64_t start = (uint64_t)large;
    large[0] = 1;
    large[sizeof large - 1] = 1;
    assert(ffm_thread_memory_holds(start, start + 1));
    assert(ffm_thread_memory_holds(start + sizeof large - 1, start + sizeof large));
    assert(ffm_thread_memory_holds((uint64_t)&variable, (uint64_t)(&variable + 1)));
    assert(ffm_thread_memory_holds((uint64_t)pthread_self(), (uint64_t)pthread_self() + 1));
}

/* Any kernel may write a managed variable: what it holds after a wait is used. */
static void read_managed_variable(synchronize sync)
{
    get_global global = (get_global)hook("cuModuleGetGlobal_v2", (void *)driver_global);
    launch start = (launch)hook("cuLaunchKernel", (void *)driver_launch);
    uint64_t address = 0;
    variable = pages(4096);
    ffm_collector_ask((void *)driver_attribute, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
    assert(global(&address, NULL, 1, "variable") == 0 && address == (uint64_t)variable);
    assert(start(1, 1, 1, 1, 1, 1, 1, 0, 0, NULL, NULL) == 0);
    assert(sync() == 0);
    assert(*(volatile int *)variable == 0);
}

static void *idle(void *nothing)
{
    (void)nothing;
    pthread_barrier_wait(&opened);
    stacks_are_known();
    return NULL;
}

static void *open_collector(void *folder)
{
    assert(ffm_collector_open(folder, FFM_MODE_CONTENTS | FFM_MODE_WATCH | FFM_MODE_GPU_TIMES, NULL) == 0);
    return NULL;
}

/* The collector is opened by another thread, as Frida's does it. */
static void open_beside_idle_threads(char *folder)
{
    pthread_t other, opener;
    pthread_barrier_init(&opened, NULL, 2);
    pthread_create(&other, NULL, idle, NULL);
    pthread_create(&opener, NULL, open_collector, folder);
    pthread_join(opener, NULL);
    pthread_barrier_wait(&opened);
    stacks_are_known();
    pthread_join(other, NULL);
}

/* The alternate signal stack is set again and again, as by a program that installs its own stack each time. */
static void alternate_stack_is_told_often(void)
{
    enum { TIMES = 5000 };
    stack_t stack = {.ss_sp = pages(BLOCK), .ss_size = BLOCK}, before;
    char *elsewhere = pages(BLOCK);
    assert(sigaltstack(&stack, &before) == 0);
    for (int i = 0; i < TIMES; i++)
        assert(sigaltstack(&stack, NULL) == 0);
    assert(sigaltstack(&before, NULL) == 0);
    assert(ffm_thread_memory_holds((uint64_t)stack.ss_sp, (uint64_t)stack.ss_sp + 1));
    assert(!ffm_thread_memory_holds((uint64_t)elsewhere, (uint64_t)elsewhere + 1));
}

static __attribute__((noinline)) void clock_function(void)
{
    ffm_clock_read(__builtin_return_address(0), NULL);
    __asm__ volatile("");
}

static __attribute__((noinline)) void clock_of_library(void)
{
    clock_function();
    __asm__ volatile("");
}

static __attribute__((noinline)) void first_reader(void)
{
    clock_of_library();
    __asm__ volatile("");
}

static __attribute__((noinline)) void second_reader(void)
{
    clock_of_library();
    __asm__ volatile("");
}

static __attribute__((noinline)) void read_at_each_depth(int depth)
{
    first_reader();
    if (depth > 0)
        read_at_each_depth(depth - 1);
    __asm__ volatile("");
}

/* The driver reads it by way of a library, in a call that is not recorded. */
static __attribute__((noinline, section("driver"))) void read_in_driver(void)
{
    clock_of_library();
    __asm__ volatile("");
}

extern char __start_driver[], __stop_driver[];

/* That the driver reads it on this thread is no reason to leave out later reads of the program's. Then one function
 * reads it over and over, then another once, from the same place on the stack; after an operation, more stacks than can
 * be captured. */
static void clocks_are_read(synchronize sync)
{
    ffm_foreign_add((uint64_t)__start_driver, (uint64_t)__stop_driver, true);
    read_in_driver();
    for (int i = 0; i < 100000; i++)
        first_reader();
    second_reader();
    first_reader();
    assert(sync() == 0);
    read_at_each_depth(1500);
}

static void call_in_child(synchronize sync, pid_t child)
{
    int status = 0;
    if (child == 0) {
        sync();
        _exit(0);
    }
    waitpid(child, &status, 0);
    assert(status == 0);
}

/* A clock that goes on by so many nanoseconds each time it is read. */
static uint64_t clock_now, clock_step;

static int stepping_clock(clockid_t clock, struct timespec *now)
{
    (void)clock;
    clock_now += clock_step;
    now->tv_sec = (time_t)(clock_now / 1000000000);
    now->tv_nsec = (long)(clock_now % 1000000000);
    return 0;
}

/* Makes calls up to the next one after which the time of the probe is measured; returns how long it was said to be
 * after each of those before. */
static uint32_t call_until_measured(query call)
{
    enum { EVERY = 16 }; /* operations of the thread */
    const ffm_thread *thread = ffm_thread_self();
    call(1);
    const uint32_t told = thread->probe_after;
    for (; thread->operations.stream.written % EVERY != EVERY - 1; call(1))
        assert(thread->probe_after == told);
    assert(thread->probe_after == told);
    call(1);
    return told;
}

/* What is only recorded takes as long after each call: the clock is read once in a while. */
static void *probes_are_measured_at_times(void *wrapper)
{
    enum { USUAL = 10, LATER = 30, INTERRUPTED = 5000 };
    const query call = (query)wrapper;
    ffm_thread *thread = ffm_thread_self();
    clock_step = USUAL;
    call(1); /* makes room for records */
    call(1);
    assert(thread->probe_after == USUAL);
    clock_step = LATER;
    assert(call_until_measured(call) == USUAL);
    assert(thread->probe_after == LATER);
    clock_step = INTERRUPTED; /* as if the thread had lost its processor */
    assert(call_until_measured(call) == LATER);
    assert(thread->probe_after == INTERRUPTED);
    assert(call_until_measured(call) == LATER);
    return NULL;
}

static void measure_probes(void)
{
    pthread_t caller;
    const uint32_t mode = ffm_call_mode();
    int (*const clock)(clockid_t, struct timespec *) = ffm_clock;
    void *wrapper = hook("cuEventQuery", (void *)driver_query);
    clock_now = ffm_now();
    ffm_call_set_mode(FFM_MODE_NAMES);
    ffm_clock = stepping_clock;
    pthread_create(&caller, NULL, probes_are_measured_at_times, wrapper);
    pthread_join(caller, NULL);
    ffm_clock = clock;
    ffm_call_set_mode(mode);
}

int main(int count, char **arguments)
{
    assert(count == 2);
    open_beside_idle_threads(arguments[1]);
    synchronize sync = (synchronize)hook("cuCtxSynchronize", (void *)driver_synchronize);
    download down = (download)hook("cuMemcpyDtoH_v2", (void *)driver_download);
    upload up = (upload)hook("cuMemcpyHtoD_v2", (void *)driver_upload);
    allocate alloc = (allocate)hook("cuMemAlloc_v2", (void *)driver_allocate);
    uint64_t address = 0;
    assert(alloc(&address, BLOCK) == 0 && address == (uint64_t)device);
    memset(device, 7, sizeof device);
    watch_source(up);
    watch_results(down);
    ffm_test_sources_sent_again();
    ffm_test_downloaded_again();
    ffm_test_viewed_memory();
    ffm_test_rows_counted_from_one();
    launch_often(sync);
    read_managed_variable(sync);
    ffm_test_memory_freed_during_a_launch();
    alternate_stack_is_told_often();
    clocks_are_read(sync);

    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, synchronize_often, (void *)sync);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    measure_probes();

    call_in_child(sync, fork());
    call_in_child(sync, (pid_t)syscall(SYS_fork)); /* without the C library, so that nobody is notified */
    return 0;
}
