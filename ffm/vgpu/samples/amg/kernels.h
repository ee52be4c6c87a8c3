/* The kernels of the multigrid method: one thread for each point of a grid. */
#pragma once

#include "grid.h"
#include "portable_kernel.h"

constexpr int block_size = 64;

inline dim3 blocks(int threads)
{
    return dim3((threads - 1) / block_size + 1);
}

/* right_side = shift * x + heat */
__global__ void heat_up(const float *x, float *right_side, int rank, int step)
{
    const int point = blockIdx.x * blockDim.x + threadIdx.x;
    if (point < points_of(0))
        right_side[point] = float(shift) * x[point] + heating(rank, step, point % fine_width, point / fine_width);
}
PORTABLE_KERNEL(heat_up);

/* A damped Jacobi step. */
template <int level> __global__ void smooth(const float *from, float *to, const float *right_side)
{
    constexpr int width = width_of(level);
    constexpr float weight = weight_of(level), diagonal = float(shift) + 4 * weight, damping = 0.8f;
    const int point = blockIdx.x * blockDim.x + threadIdx.x;
    if (point >= width * width)
        return;
    const float sum = neighbours(from, width, point % width, point / width);
    to[point] = (1 - damping) * from[point] + damping * (right_side[point] + weight * sum) / diagonal;
}
PORTABLE_KERNEL(smooth<0>);
PORTABLE_KERNEL(smooth<1>);

template <int level> ON_BOTH inline float residual_at(const float *x, const float *right_side, int column, int row)
{
    constexpr int width = width_of(level);
    constexpr float weight = weight_of(level), diagonal = float(shift) + 4 * weight;
    if (column < 0 || column >= width || row < 0 || row >= width)
        return 0;
    const int point = row * width + column;
    return right_side[point] - diagonal * x[point] + weight * neighbours(x, width, column, row);
}

/* The coarser grid's right side: the residual, weighted over nine points (one thread for each coarse point). */
template <int level> __global__ void restrict_residual(const float *x, const float *right_side, float *coarse)
{
    constexpr int width = width_of(level + 1);
    const int point = blockIdx.x * blockDim.x + threadIdx.x;
    if (point >= width * width)
        return;
    const int column = 2 * (point % width) + 1, row = 2 * (point / width) + 1;
    float sum = 0;
    for (int down = -1; down <= 1; ++down)
        for (int right = -1; right <= 1; ++right)
            sum += residual_at<level>(x, right_side, column + right, row + down) *
                   ((down == 0 ? 2.0f : 1.0f) * (right == 0 ? 2.0f : 1.0f) / 16.0f);
    coarse[point] = sum;
}
PORTABLE_KERNEL(restrict_residual<0>);
PORTABLE_KERNEL(restrict_residual<1>);

/* Adds the coarser grid's solution, interpolated linearly (one thread for each fine point). */
template <int level> __global__ void add_coarse(const float *coarse, float *x)
{
    constexpr int width = width_of(level), coarse_width = width_of(level + 1);
    const int point = blockIdx.x * blockDim.x + threadIdx.x;
    if (point >= width * width)
        return;
    const int column = point % width, row = point / width;
    const int left = (column - 1) >> 1, right = column >> 1, up = (row - 1) >> 1, down = row >> 1;
    x[point] += (at(coarse, coarse_width, left, up) + at(coarse, coarse_width, right, up) +
                 at(coarse, coarse_width, left, down) + at(coarse, coarse_width, right, down)) /
                4;
}
PORTABLE_KERNEL(add_coarse<0>);
PORTABLE_KERNEL(add_coarse<1>);

/* The sums of the squared residuals of each row: one thread for each row. */
__global__ void square_rows(const float *x, const float *right_side, float *sums)
{
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= fine_width)
        return;
    float sum = 0;
    for (int column = 0; column < fine_width; ++column) {
        const float residual = residual_at<0>(x, right_side, column, row);
        sum += residual * residual;
    }
    sums[row] = sum;
}
PORTABLE_KERNEL(square_rows);
