/* libvblas: a small closed library for linear algebra, a stand-in for libraries like cuBLAS.
 *
 * Built for the virtual GPU, its calls reach the driver through a private table: they launch kernels, and wait for the
 * GPU, without any public call that a tool could see. With nvcc the functions below are plain CUDA code, so that one
 * source builds for both.
 */
#ifndef VBLAS_H
#define VBLAS_H

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    VBLAS_STATUS_SUCCESS = 0,
    VBLAS_STATUS_NOT_INITIALIZED = 1, /* no driver, or no such handle */
    VBLAS_STATUS_ALLOC_FAILED = 3,
    VBLAS_STATUS_INVALID_VALUE = 7,
    VBLAS_STATUS_EXECUTION_FAILED = 13
} vblasStatus_t;

typedef struct vblasContext *vblasHandle_t;

#ifdef __CUDACC__
#define VBLAS_CALL static inline vblasStatus_t
#else
#define VBLAS_CALL vblasStatus_t
#endif

/* Creates a handle for the calling thread's current context, with a small workspace on the device. */
VBLAS_CALL vblasCreate(vblasHandle_t *handle);

/* Frees the handle and its workspace; waits for the GPU, as cudaFree does. */
VBLAS_CALL vblasDestroy(vblasHandle_t handle);

/* Makes later calls use the stream; a new handle uses the legacy default stream. */
VBLAS_CALL vblasSetStream(vblasHandle_t handle, cudaStream_t stream);

/* Sum of the absolute values of n floats, `increment` floats apart, in device memory. Returns when `*result`,
 * in host memory, is there. `n` of zero or less gives 0. */
VBLAS_CALL vblasSasum(vblasHandle_t handle, int n, const float *x, int increment, float *result);

#ifdef __cplusplus
}
#endif

#ifdef __CUDACC__
#include "vblas_portable.h"
#endif
#endif
