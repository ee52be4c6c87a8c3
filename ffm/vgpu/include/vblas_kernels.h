/* The kernels of vblas, for both compilers. */
#ifndef VBLAS_KERNELS_H
#define VBLAS_KERNELS_H

#include "portable_kernel.h"

/* Threads that each sum a part: enough to keep a GPU's memory busy, and few enough for one thread to add up.
 */
#define VBLAS_PARTS 1024

/* partial[i] = |x[i]| + |x[i + VBLAS_PARTS]| + …, for i below VBLAS_PARTS. */
static __global__ void vblas_sum_parts(const float *x, int n, int increment, float *partial)
{
    int part = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int index = part; index < n; index += VBLAS_PARTS) {
        float value = x[(long)index * increment];
        sum += value < 0 ? -value : value;
    }
    partial[part] = sum;
}

/* *total = the sum of all parts; one thread. */
static __global__ void vblas_add_parts(const float *partial, float *total)
{
    float sum = 0;
    for (int part = 0; part < VBLAS_PARTS; ++part)
        sum += partial[part];
    *total = sum;
}

#endif
