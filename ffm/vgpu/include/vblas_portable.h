/* vblas as plain CUDA code, for programs that nvcc builds for a real GPU. Included by vblas.h. */
#ifndef VBLAS_PORTABLE_H
#define VBLAS_PORTABLE_H

#include "vblas_kernels.h"

struct vblasContext {
    cudaStream_t stream;
    float *workspace; /* VBLAS_PARTS parts and the total */
};

static inline vblasStatus_t vblasCreate(vblasHandle_t *handle)
{
    if (!handle)
        return VBLAS_STATUS_INVALID_VALUE;
    vblasHandle_t created = new vblasContext{nullptr, nullptr};
    if (cudaMalloc((void **)&created->workspace, (VBLAS_PARTS + 1) * sizeof(float)) != cudaSuccess) {
        delete created;
        return VBLAS_STATUS_ALLOC_FAILED;
    }
    *handle = created;
    return VBLAS_STATUS_SUCCESS;
}

static inline vblasStatus_t vblasDestroy(vblasHandle_t handle)
{
    if (!handle)
        return VBLAS_STATUS_NOT_INITIALIZED;
    cudaFree(handle->workspace);
    delete handle;
    return VBLAS_STATUS_SUCCESS;
}

static inline vblasStatus_t vblasSetStream(vblasHandle_t handle, cudaStream_t stream)
{
    if (!handle)
        return VBLAS_STATUS_NOT_INITIALIZED;
    handle->stream = stream;
    return VBLAS_STATUS_SUCCESS;
}

static inline vblasStatus_t vblasSasum(vblasHandle_t handle, int n, const float *x, int increment, float *result)
{
    if (!handle)
        return VBLAS_STATUS_NOT_INITIALIZED;
    if (!result || increment <= 0 || (n > 0 && !x))
        return VBLAS_STATUS_INVALID_VALUE;
    *result = 0;
    if (n <= 0)
        return VBLAS_STATUS_SUCCESS;
    float *total = handle->workspace + VBLAS_PARTS;
    LAUNCH(vblas_sum_parts, dim3(VBLAS_PARTS / 128), dim3(128), 0, handle->stream, x, n, increment, handle->workspace);
    LAUNCH(vblas_add_parts, dim3(1), dim3(1), 0, handle->stream, handle->workspace, total);
    bool failed =
        cudaMemcpyAsync(result, total, sizeof *result, cudaMemcpyDeviceToHost, handle->stream) != cudaSuccess ||
        cudaStreamSynchronize(handle->stream) != cudaSuccess;
    return failed ? VBLAS_STATUS_EXECUTION_FAILED : VBLAS_STATUS_SUCCESS;
}

#endif
