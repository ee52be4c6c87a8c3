/* Ends the program with a clear message when a call failed. */
#pragma once

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime_api.h>

inline void check(cudaError_t status)
{
    if (status == cudaSuccess)
        return;
    std::fprintf(stderr, "als: CUDA call failed: %s\n", cudaGetErrorString(status));
    std::exit(2);
}
