/* The kernels of the sparse library, for float, double and int. */
#pragma once

#include "portable_kernel.h"

namespace sparse
{

constexpr int block_size = 128;
constexpr int part_count = 128;

inline dim3 blocks(int threads)
{
    return dim3((threads - 1) / block_size + 1);
}

/* One thread for each entry of a matrix: its product with the vector's element, and its row. */
template <typename Value>
__global__ void multiply_entries(const int *rows, const int *columns, const Value *values, const Value *x,
                                 int *entry_rows, Value *products, int entries)
{
    const int entry = blockIdx.x * blockDim.x + threadIdx.x;
    if (entry >= entries)
        return;
    entry_rows[entry] = rows[entry];
    products[entry] = values[entry] * x[columns[entry]];
}

/* The first entry of each row adds up the row. Rows without entries keep what they hold. */
template <typename Value> __global__ void sum_rows(const int *entry_rows, const Value *products, Value *y, int entries)
{
    const int entry = blockIdx.x * blockDim.x + threadIdx.x;
    if (entry >= entries || (entry > 0 && entry_rows[entry - 1] == entry_rows[entry]))
        return;
    Value sum = 0;
    for (int other = entry; other < entries && entry_rows[other] == entry_rows[entry]; ++other)
        sum += products[other];
    y[entry_rows[entry]] = sum;
}

/* part_count threads, each of which adds up a part of the products. */
template <typename Value> __global__ void multiply_parts(const Value *x, const Value *y, Value *parts, int size)
{
    const int part = blockIdx.x * blockDim.x + threadIdx.x;
    Value sum = 0;
    for (int index = part; index < size; index += part_count)
        sum += x[index] * y[index];
    parts[part] = sum;
}

/* One thread adds up the parts, into the first of them. */
template <typename Value> __global__ void sum_parts(Value *parts)
{
    Value sum = 0;
    for (int part = 0; part < part_count; ++part)
        sum += parts[part];
    parts[0] = sum;
}

/* y = x_factor * x + y_factor * y; what y holds does not matter where y_factor is 0 */
template <typename Value> __global__ void combine(Value x_factor, const Value *x, Value y_factor, Value *y, int size)
{
    const int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < size)
        y[index] = y_factor == Value(0) ? x_factor * x[index] : x_factor * x[index] + y_factor * y[index];
}

PORTABLE_KERNEL(multiply_entries<int>);
PORTABLE_KERNEL(multiply_entries<float>);
PORTABLE_KERNEL(multiply_entries<double>);
PORTABLE_KERNEL(sum_rows<int>);
PORTABLE_KERNEL(sum_rows<float>);
PORTABLE_KERNEL(sum_rows<double>);
PORTABLE_KERNEL(multiply_parts<int>);
PORTABLE_KERNEL(multiply_parts<float>);
PORTABLE_KERNEL(multiply_parts<double>);
PORTABLE_KERNEL(sum_parts<int>);
PORTABLE_KERNEL(sum_parts<float>);
PORTABLE_KERNEL(sum_parts<double>);
PORTABLE_KERNEL(combine<float>);
PORTABLE_KERNEL(combine<double>);

} // namespace sparse
