/* The closed library that sums the errors: on a real GPU cuBLAS, on the virtual one libvblas. */
#pragma once

#ifdef __CUDACC__

#include <cublas_v2.h>

using vblasHandle_t = cublasHandle_t;
#define vblasCreate cublasCreate
#define vblasDestroy cublasDestroy
#define vblasSasum cublasSasum

inline void check(cublasStatus_t status) {
    if (status == CUBLAS_STATUS_SUCCESS)
        return;
    std::fprintf(stderr, "als: cuBLAS call failed with status %d\n", static_cast<int>(status));
    std::exit(2);
}

#else

#include <vblas.h>

#endif
