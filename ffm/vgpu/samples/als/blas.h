/* The closed library that sums the errors: libvblas, or cuBLAS if nvcc is told so. */
#pragma once

#include "check.h"

#ifdef ALS_CUBLAS

#include <cublas_v2.h>

using vblasHandle_t = cublasHandle_t;
using vblasStatus_t = cublasStatus_t;
#define VBLAS_STATUS_SUCCESS CUBLAS_STATUS_SUCCESS
#define vblasCreate cublasCreate
#define vblasDestroy cublasDestroy
#define vblasSasum cublasSasum

#else

#include "vblas.h"

#endif

inline void check(vblasStatus_t status)
{
    if (status == VBLAS_STATUS_SUCCESS)
        return;
    std::fprintf(stderr, "als: library call failed with status %d\n", static_cast<int>(status));
    std::exit(2);
}
