/* Frees that wait, in a context that the program made and detaches from; `attached` refers to it once more before. */
#include <cstdio>
#include <cstring>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations" // cuCtxAttach, cuCtxDetach
#include <cuda.h>

#define REQUIRE(call)                                                                                                  \
    do {                                                                                                               \
        if ((call) != CUDA_SUCCESS)                                                                                    \
            return 1;                                                                                                  \
    } while (0)

int main(int, char **arguments)
{
    CUcontext context, same;
    CUstream stream;
    CUdeviceptr memory;
    REQUIRE(cuInit(0));
    REQUIRE(cuCtxCreate(&context, nullptr, 0, 0));
    REQUIRE(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    if (std::strcmp(arguments[1], "attached") == 0) {
        REQUIRE(cuCtxAttach(&same, 0));
        REQUIRE(cuCtxDetach(same));
    }
    for (int turn = 0; turn < 3; ++turn) {
        REQUIRE(cuMemAlloc_v2(&memory, 1 << 16));
        REQUIRE(cuMemsetD8Async(memory, 7, 1 << 16, stream));
        REQUIRE(cuMemFree_v2(memory));
    }
    REQUIRE(cuStreamDestroy_v2(stream));
    REQUIRE(cuCtxDetach(context));
    std::puts("detached");
    return 0;
}
