/* The kernels of als.cu: the sparse products, the Gram matrices and the errors. */
#pragma once

#include "portable_kernel.h"
#include "ratings.h"

/* Which half of an iteration a kernel works for: solving the rows of X, or those of Theta. */
enum class Half { x, theta };

/* products[i * rows + row] = sum of the row's ratings times factor i of their partners: one thread for each
 * row and factor. Column after column, as a sparse matrix library leaves it. */
template <Half>
__global__ void multiply_ratings(const int *offsets, const int *partners, const float *values, const float *factors,
                                 float *products, int rows)
{
    const int thread = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = thread / factor_count;
    const int i = thread % factor_count;
    if (row >= rows)
        return;
    float sum = 0;
    for (int r = offsets[row]; r < offsets[row + 1]; ++r)
        sum += values[r] * factors[partners[r] * factor_count + i];
    products[i * rows + row] = sum;
}
PORTABLE_KERNEL(multiply_ratings<Half::x>);
PORTABLE_KERNEL(multiply_ratings<Half::theta>);

/* From column after column to row after row. */
__global__ void transpose(const float *columns, float *rows_out, int rows)
{
    const int thread = blockIdx.x * blockDim.x + threadIdx.x;
    if (thread < rows * factor_count)
        rows_out[thread] = columns[thread % factor_count * rows + thread / factor_count];
}
PORTABLE_KERNEL(transpose);

/* grams[row] = sum of t t^T over the factor vectors t of the row's partners, plus the row's weight on the
 * diagonal: one thread for each row of each matrix. */
template <Half>
__global__ void gram_matrices(const int *offsets, const int *partners, const float *factors, const float *weights,
                              float *grams, int rows)
{
    const int thread = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = thread / factor_count;
    const int i = thread % factor_count;
    if (row >= rows)
        return;
    float sums[factor_count] = {};
    for (int r = offsets[row]; r < offsets[row + 1]; ++r) {
        const float *partner = factors + partners[r] * factor_count;
        const float factor = partner[i];
        for (int j = 0; j < factor_count; ++j)
            sums[j] += factor * partner[j];
    }
    sums[i] += weights[row];
    for (int j = 0; j < factor_count; ++j)
        grams[thread * factor_count + j] = sums[j];
}
PORTABLE_KERNEL(gram_matrices<Half::x>);
PORTABLE_KERNEL(gram_matrices<Half::theta>);

/* Adds the squared errors of all `count` ratings to `bins` sums: one thread for each sum, so that the order
 * of the additions is always the same. */
__global__ void add_squared_errors(const int *rows, const int *columns, const float *values, const float *x,
                                   const float *theta, float *errors, int count, int bins)
{
    const int bin = blockIdx.x * blockDim.x + threadIdx.x;
    if (bin >= bins)
        return;
    float sum = 0;
    for (int r = bin; r < count; r += bins) {
        const float *user = x + rows[r] * factor_count;
        const float *item = theta + columns[r] * factor_count;
        float error = values[r];
        for (int i = 0; i < factor_count; ++i)
            error -= user[i] * item[i];
        sum += error * error;
    }
    errors[bin] += sum;
}
PORTABLE_KERNEL(add_squared_errors);
