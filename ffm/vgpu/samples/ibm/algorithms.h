/* The algorithms of the sparse library. As in Thrust and CUSP, a call passes through several templates until
 * one allocates its temporaries, and their destructors free them. */
#pragma once

#include "kernels.h"
#include "storage.h"

namespace sparse
{
namespace detail
{
namespace generic
{

/* y = matrix * x */
template <typename System, typename Value>
void multiply(System system, const coo_matrix<Value> &matrix, const device_vector<Value> &x, device_vector<Value> &y)
{
    const int entries = matrix.values.size();
    temporary_array<int, System> rows(system, entries);
    temporary_array<Value, System> products(system, entries);
    check(cudaMemsetAsync(y.data(), 0, y.size() * sizeof(Value), 0));
    LAUNCH(multiply_entries<Value>, blocks(entries), dim3(block_size), 0, 0, matrix.row_indices.data(),
           matrix.column_indices.data(), matrix.values.data(), x.data(), rows.data(), products.data(), entries);
    LAUNCH(sum_rows<Value>, blocks(entries), dim3(block_size), 0, 0, rows.data(), products.data(), y.data(), entries);
    check(cudaGetLastError());
}

template <typename System, typename Value>
Value inner_product(System system, const device_vector<Value> &x, const device_vector<Value> &y)
{
    temporary_array<Value, System> parts(system, part_count);
    LAUNCH(multiply_parts<Value>, blocks(part_count), dim3(block_size), 0, 0, x.data(), y.data(), parts.data(),
           x.size());
    LAUNCH(sum_parts<Value>, dim3(1), dim3(1), 0, 0, parts.data());
    check(cudaGetLastError());
    Value sum;
    // needed: result used at once
    check(cudaMemcpy(&sum, parts.data(), sizeof sum, cudaMemcpyDeviceToHost));
    return sum;
}

} // namespace generic

template <typename Value>
void select_multiply(const coo_matrix<Value> &matrix, const device_vector<Value> &x, device_vector<Value> &y)
{
    generic::multiply(cuda_system(), matrix, x, y);
}

} // namespace detail

/* y = matrix * x; does not wait for the GPU by itself. */
template <typename Value>
void multiply(const coo_matrix<Value> &matrix, const device_vector<Value> &x, device_vector<Value> &y)
{
    detail::select_multiply(matrix, x, y);
}

template <typename Value> Value dot(const device_vector<Value> &x, const device_vector<Value> &y)
{
    return detail::generic::inner_product(cuda_system(), x, y);
}

/* y = x_factor * x + y_factor * y */
template <typename Value>
void axpby(Value x_factor, const device_vector<Value> &x, Value y_factor, device_vector<Value> &y)
{
    LAUNCH(combine<Value>, blocks(y.size()), dim3(block_size), 0, 0, x_factor, x.data(), y_factor, y.data(), y.size());
    check(cudaGetLastError());
}

/* The vectors that conjugate gradients work on. */
template <typename Value> struct solver_workspace {
    explicit solver_workspace(int size) : residual(size), direction(size), product(size) {}

    device_vector<Value> residual;
    device_vector<Value> direction;
    device_vector<Value> product;
};

/* Conjugate gradients for a symmetric positive definite matrix, from `x`, until the squared residual is below
 * `tolerance` or `limit` steps are done. `meanwhile` is called in each step while the GPU multiplies. */
template <typename Value, typename Work>
void conjugate_gradients(const coo_matrix<Value> &matrix, device_vector<Value> &x,
                         const device_vector<Value> &right_side, solver_workspace<Value> &workspace, Value tolerance,
                         int limit, Work meanwhile)
{
    auto &[residual, direction, product] = workspace;
    multiply(matrix, x, residual);
    axpby(Value(1), right_side, Value(-1), residual);
    axpby(Value(1), residual, Value(0), direction);
    Value squared = dot(residual, residual);
    for (int step = 0; step < limit && squared > tolerance; ++step) {
        multiply(matrix, direction, product);
        meanwhile();
        const Value length = squared / dot(direction, product);
        axpby(length, direction, Value(1), x);
        axpby(-length, product, Value(1), residual);
        const Value remaining = dot(residual, residual);
        axpby(Value(1), residual, remaining / squared, direction);
        squared = remaining;
    }
}

} // namespace sparse
