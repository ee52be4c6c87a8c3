/* Kernels of several sizes, launched in two ways, and a graph of one. */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry work() { ret; }\n";

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        CUresult result = (call);                                                                                      \
        if (result != CUDA_SUCCESS) {                                                                                  \
            fprintf(stderr, "%s: the driver answered %d\n", #call, (int)result);                                       \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

/* As a graph that the stream records. */
static void launch_graph(CUfunction work, CUstream stream)
{
    CUgraph graph;
    CUgraphExec executable;
    CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CHECK(cuLaunchKernel(work, 5, 1, 1, 32, 1, 1, 0, stream, NULL, NULL));
    CHECK(cuStreamEndCapture(stream, &graph));
    CHECK(cuGraphInstantiateWithFlags(&executable, graph, 0));
    CHECK(cuGraphLaunch(executable, stream));
}

int main(void)
{
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUfunction work;
    CUstream stream;
    int multiprocessors, threads;
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDeviceGetAttribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
    CHECK(cuDeviceGetAttribute(&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, device));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoadData(&module, ptx));
    CHECK(cuModuleGetFunction(&work, module, "work"));
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CHECK(cuLaunchKernel(work, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
    CHECK(cuLaunchKernel(work, 2, 3, 4, 8, 4, 2, 0, NULL, NULL, NULL));
    const CUlaunchConfig how = {
        .gridDimX = (unsigned)(multiprocessors * (threads / 256)),
        .gridDimY = 1,
        .gridDimZ = 1,
        .blockDimX = 16,
        .blockDimY = 16,
        .blockDimZ = 1,
        .hStream = stream,
    };
    CHECK(cuLaunchKernelEx(&how, work, NULL, NULL));
    launch_graph(work, stream);
    CHECK(cuCtxSynchronize());
    return 0;
}
