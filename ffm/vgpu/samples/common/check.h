/* Ends the program with a clear message when a call failed. */
#pragma once

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include <cuda_runtime_api.h>

inline void check(cudaError_t status)
{
    if (status == cudaSuccess)
        return;
    std::fprintf(stderr, "%s: CUDA call failed: %s\n", program_invocation_short_name, cudaGetErrorString(status));
    std::exit(2);
}
