/* kinds OUTPUT CALLS TURNS BLOCKS [KIND]: makes each kind of driver call over and over, 16 frames deep.
 *
 * BLOCKS of heap memory and one of 64 GiB stay allocated meanwhile, since a tool that follows host memory looks up
 * where each transfer's lies. Writes to OUTPUT, for each kind, its name and the least nanoseconds of the processor that
 * the calling thread spent on a call in any of TURNS turns of CALLS calls. Waiting does not count, nor does what other
 * threads do; work that was enqueued ends between turns. With KIND, only kinds whose names contain it are made. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clocks.h"
#include "driver.h"
#include "host_blocks.h"

enum { SMALL = 256, LARGE = 64 * 1024, COPIES = 4 };

static const char code[] = ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry step() { ret; }\n";

static struct {
    CUstream stream;
    CUevent event, other;
    CUfunction step;
    CUgraphExec graph;
    CUdeviceptr device, target;
    char *pinned, *pageable;
    volatile unsigned *gate; /* in pinned memory: the held stream waits until it is 1 */
    int file;
} on;

#define KINDS                                                                                                          \
    KIND(event_query, cuEventQuery(on.event))                                                                          \
    HELD(event_record, cuEventRecord(on.event, on.stream))                                                             \
    KIND(event_synchronize, cuEventSynchronize(on.event))                                                              \
    KIND(event_create_destroy, cuEventCreate(&on.other, CU_EVENT_DEFAULT) || cuEventDestroy(on.other))                 \
    KIND(stream_query, cuStreamQuery(on.stream))                                                                       \
    HELD(stream_wait_event, cuStreamWaitEvent(on.stream, on.event, 0))                                                 \
    KIND(stream_synchronize, cuStreamSynchronize(on.stream))                                                           \
    KIND(stream_create_destroy, create_stream())                                                                       \
    KIND(context_synchronize, cuCtxSynchronize())                                                                      \
    KIND(alloc_free, alloc())                                                                                          \
    KIND(alloc_free_async, alloc_async())                                                                              \
    KIND(alloc_free_pinned, alloc_pinned())                                                                            \
    KIND(alloc_free_managed, alloc_managed())                                                                          \
    KIND(memset, cuMemsetD8(on.device, 0, SMALL))                                                                      \
    HELD(memset_async, cuMemsetD8Async(on.device, 0, SMALL, on.stream))                                                \
    KIND(upload_pageable_small, cuMemcpyHtoD(on.device, on.pageable, SMALL))                                           \
    KIND(upload_pageable_large, cuMemcpyHtoD(on.device, on.pageable, LARGE))                                           \
    KIND(upload_pinned_small, cuMemcpyHtoD(on.device, on.pinned, SMALL))                                               \
    HELD(upload_pageable_async, cuMemcpyHtoDAsync(on.device, on.pageable, SMALL, on.stream))                           \
    HELD(upload_pinned_async, cuMemcpyHtoDAsync(on.device, on.pinned, SMALL, on.stream))                               \
    KIND(download_pageable_small, cuMemcpyDtoH(on.pageable, on.device, SMALL))                                         \
    KIND(download_pageable_large, cuMemcpyDtoH(on.pageable, on.device, LARGE))                                         \
    KIND(download_pinned_small, cuMemcpyDtoH(on.pinned, on.device, SMALL))                                             \
    HELD(download_pinned_async, cuMemcpyDtoHAsync(on.pinned, on.device, SMALL, on.stream))                             \
    KIND(download_touched, download_and_touch())                                                                       \
    HELD(copy_device_async, cuMemcpyDtoDAsync(on.target, on.device, SMALL, on.stream))                                 \
    KIND(copy_generic, cuMemcpy(on.device, (CUdeviceptr)on.pinned, SMALL))                                             \
    HELD(copy_batch, batch())                                                                                          \
    HELD(launch, cuLaunchKernel(on.step, 1, 1, 1, 1, 1, 1, 0, on.stream, NULL, NULL))                                  \
    HELD(graph_launch, cuGraphLaunch(on.graph, on.stream))                                                             \
    KIND(launch_and_wait,                                                                                              \
         cuLaunchKernel(on.step, 1, 1, 1, 1, 1, 1, 0, on.stream, NULL, NULL) || cuStreamSynchronize(on.stream))        \
    KIND(malloc_free, (free(hidden(malloc(SMALL))), 0))                                                                \
    KIND(malloc_free_large, (free(hidden(malloc(LARGE))), 0))                                                          \
    KIND(system_write, write(on.file, "x", 1) != 1)                                                                    \
    KIND(clock_read, read_clock())

static void *hidden(void *block)
{
    __asm__ volatile("" : "+r"(block)); /* otherwise the compiler leaves the pair out */
    return block;
}

static int create_stream(void)
{
    CUstream made;
    return cuStreamCreate(&made, CU_STREAM_NON_BLOCKING) || cuStreamDestroy(made);
}

static int alloc(void)
{
    CUdeviceptr made;
    return cuMemAlloc(&made, SMALL) || cuMemFree(made);
}

static int alloc_async(void)
{
    CUdeviceptr made;
    return cuMemAllocAsync(&made, SMALL, on.stream) || cuMemFreeAsync(made, on.stream);
}

static int alloc_pinned(void)
{
    void *made;
    return cuMemAllocHost(&made, SMALL) || cuMemFreeHost(made);
}

static int alloc_managed(void)
{
    CUdeviceptr made;
    return cuMemAllocManaged(&made, SMALL, CU_MEM_ATTACH_GLOBAL) || cuMemFree(made);
}

static int download_and_touch(void)
{
    const CUresult result = cuMemcpyDtoH(on.pageable, on.device, SMALL);
    return result || *(volatile char *)on.pageable != 0;
}

static int batch(void)
{
    CUdeviceptr to[COPIES], from[COPIES];
    size_t sizes[COPIES], first = 0;
    CUmemcpyAttributes how;
    memset(&how, 0, sizeof how);
    how.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    for (int i = 0; i < COPIES; i++) {
        to[i] = on.device + (CUdeviceptr)(i * SMALL);
        from[i] = (CUdeviceptr)on.pinned + (CUdeviceptr)(i * SMALL);
        sizes[i] = SMALL;
    }
    return cuMemcpyBatchAsync(to, from, sizes, COPIES, &how, &first, 1, on.stream);
}

static int read_clock(void)
{
    struct timespec now;
    return clock_gettime(CLOCK_MONOTONIC, &now);
}

typedef struct {
    FILE *output;
    long calls, turns;
    const char *kind;
} work;

/* Hold back what is enqueued from now on. */
static void close_gate(void)
{
    *on.gate = 0;
    check(cuStreamWaitValue32(on.stream, (CUdeviceptr)on.gate, 1, CU_STREAM_WAIT_VALUE_EQ));
}

#define TURN(name, call, before)                                                                                       \
    __attribute__((noinline)) static double name##_turn(long calls)                                                    \
    {                                                                                                                  \
        int failures = 0;                                                                                              \
        before;                                                                                                        \
        const double began = clock_ns(CLOCK_THREAD_CPUTIME_ID);                                                        \
        for (long i = 0; i < calls; i++)                                                                               \
            failures += (call) != 0;                                                                                   \
        const double spent = clock_ns(CLOCK_THREAD_CPUTIME_ID) - began;                                                \
        *on.gate = 1;                                                                                                  \
        check(cuCtxSynchronize());                                                                                     \
        if (failures != 0) {                                                                                           \
            fprintf(stderr, "kinds: %s failed %d times\n", #name, failures);                                           \
            exit(1);                                                                                                   \
        }                                                                                                              \
        return spent;                                                                                                  \
    }
#define KIND(name, call) TURN(name, call, (void)0)
#define HELD(name, call) TURN(name, call, close_gate())
KINDS
#undef KIND
#undef HELD

static const struct {
    const char *name;
    double (*turn)(long calls);
} kinds[] = {
#define KIND(name, call) {#name, name##_turn},
#define HELD KIND
    KINDS
#undef HELD
#undef KIND
};

/* The innermost function below which the calls are made. */
__attribute__((noinline)) static int frame_11(const work *todo)
{
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
        double least = 0;
        if (strstr(kinds[kind].name, todo->kind) == NULL)
            continue;
        kinds[kind].turn(1 + todo->calls / 10);
        for (long turn = 0; turn < todo->turns; turn++) {
            const double spent = kinds[kind].turn(todo->calls);
            least = turn == 0 || spent < least ? spent : least;
        }
        fprintf(todo->output, "%s %.3f\n", kinds[kind].name, least / (double)todo->calls);
    }
    return 0;
}

#define INNERMOST_FRAME 11
#include "frames.h"

static void record_graph(void)
{
    CUgraph graph;
    check(cuStreamBeginCapture(on.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    check(cuLaunchKernel(on.step, 1, 1, 1, 1, 1, 1, 0, on.stream, NULL, NULL));
    check(cuStreamEndCapture(on.stream, &graph));
    check(cuGraphInstantiate(&on.graph, graph, 0));
}

static void prepare(void)
{
    CUmodule module;
    open_driver();
    check(cuModuleLoadData(&module, code));
    check(cuModuleGetFunction(&on.step, module, "step"));
    check(cuStreamCreate(&on.stream, CU_STREAM_NON_BLOCKING));
    check(cuEventCreate(&on.event, CU_EVENT_DEFAULT));
    check(cuMemAlloc(&on.device, LARGE));
    check(cuMemAlloc(&on.target, LARGE));
    check(cuMemAllocHost((void **)&on.pinned, LARGE));
    check(cuMemAllocHost((void **)&on.gate, sizeof *on.gate));
    check(cuMemsetD8(on.device, 0, LARGE));
    record_graph();
}

int main(int count, char **arguments)
{
    work todo = {0};
    if (count == 5 || count == 6) {
        const char *kind = count == 6 ? arguments[5] : "";
        todo = (work){fopen(arguments[1], "w"), atol(arguments[2]), atol(arguments[3]), kind};
        on.file = open("/dev/null", O_WRONLY | O_CLOEXEC);
        on.pageable = calloc(1, LARGE);
    }
    if (todo.output == NULL || todo.calls < 1 || todo.turns < 1 || on.file < 0 || on.pageable == NULL) {
        fprintf(stderr, "usage: kinds OUTPUT CALLS TURNS BLOCKS [KIND]\n");
        return 2;
    }
    prepare();
    allocate_host_blocks(atol(arguments[4]));
    const int failed = frame_1(&todo);
    return fclose(todo.output) != 0 || failed != 0;
}
