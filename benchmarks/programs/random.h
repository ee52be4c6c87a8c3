/* What the programs of random_programs.py share: one loop of driver calls, some of which the command line leaves out.
 *
 * PROGRAM LEFT_OUT: a hexadecimal mask; call number N of the loop is not made if bit N is set. */
#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { STREAMS = 3, BUFFERS = 4, BYTES = 1 << 18 };

static const char ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry k0() { ret; }\n.visible .entry k1() { ret; }\n.visible .entry k2() { ret; }\n";

static CUfunction kernels[3];
static CUstream streams[STREAMS]; /* the first is the default one */
static CUevent event;
static CUdeviceptr device[BUFFERS];
static char *pinned[BUFFERS], *pageable[BUFFERS];
static uint64_t left_out;
static volatile long sum;

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        CUresult result = (call);                                                                                      \
        if (result != CUDA_SUCCESS) {                                                                                  \
            fprintf(stderr, "%s: the driver answered %d\n", #call, (int)result);                                       \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

#define UNLESS_LEFT_OUT(number, call)                                                                                  \
    do {                                                                                                               \
        if (!(left_out >> (number) & 1))                                                                               \
            CHECK(call);                                                                                               \
    } while (0)

static inline void launch(int kernel, int stream, unsigned blocks, unsigned threads)
{
    CHECK(cuLaunchKernel(kernels[kernel], blocks, 1, 1, threads, 1, 1, 0, streams[stream], NULL, NULL));
}

/* The CPU works for as many loads and stores: without a clock, so that no wait serves timing. */
static inline void work(long steps)
{
    for (long step = 0; step < steps; step++)
        sum += step;
}

static inline void look_at(const char *result)
{
    for (int at = 0; at < BYTES; at += 4096)
        sum += result[at];
}

static void begin(int count, char **arguments)
{
    if (count != 2) {
        fprintf(stderr, "usage: %s LEFT_OUT\n", arguments[0]);
        exit(2);
    }
    left_out = strtoull(arguments[1], NULL, 16);
    CUdevice number;
    CUcontext context;
    CUmodule module;
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&number, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, number));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoadData(&module, ptx));
    for (int kernel = 0; kernel < 3; kernel++) {
        char name[] = {'k', (char)('0' + kernel), 0};
        CHECK(cuModuleGetFunction(&kernels[kernel], module, name));
    }
    for (int stream = 1; stream < STREAMS; stream++)
        CHECK(cuStreamCreate(&streams[stream], CU_STREAM_NON_BLOCKING));
    CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    for (int buffer = 0; buffer < BUFFERS; buffer++) {
        CHECK(cuMemAlloc(&device[buffer], BYTES));
        CHECK(cuMemAllocHost((void **)&pinned[buffer], BYTES));
        pageable[buffer] = malloc(BYTES);
        memset(pageable[buffer], buffer, BYTES);
        memset(pinned[buffer], 16 + buffer, BYTES);
    }
}
