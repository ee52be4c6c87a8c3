/* The iterations of the factorisation. The CUDA calls come in the order of cuMF's als.cu
 * (https://github.com/cuMF/cumf_als), with the needless waits, frees and uploads that it had.
 *
 * A comment that begins with `problem:`, `needed:` or `once:` is the ground truth about the CUDA call below
 * it; `truth.py` collects them.
 */
#include "als.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <vector>

#include "als_kernels.h"
#include "blas.h"
#include "cg.h"
#include "check.h"
#include "reference.h"
#include "variant.h"

namespace
{

constexpr int f = factor_count;
constexpr int block_size = 64;
constexpr int error_bins = 1000;

dim3 blocks(int threads)
{
    return dim3((threads - 1) / block_size + 1);
}

/* What each of `rows` Gram matrices gets on its diagonal: the penalty for each rating of the row. */
void fill_weights(double penalty, const int *offsets, int rows, float *weights)
{
    for (int row = 0; row < rows; ++row)
        weights[row] = static_cast<float>(penalty * std::max(offsets[row + 1] - offsets[row], 1));
}

double root_mean(float sum, int count)
{
    return std::sqrt(static_cast<double>(sum) / count);
}

} // namespace

double user_penalty(int iteration)
{
    return item_penalty * (1 + 8.0 / (1 + iteration));
}

Errors doALS(const TrainingSet &training, const Coordinates &test, float *x_host, float *theta_host,
             const Weights &weights_host, int iterations, ReferenceSolver &reference)
{
    const int m = training.rows, n = training.columns, nnz = training.count, nnz_test = test.count();
    const std::size_t rating_bytes = nnz * sizeof(float), test_bytes = nnz_test * sizeof(float);
    const std::size_t x_bytes = m * f * sizeof(float), theta_bytes = n * f * sizeof(float);
    const std::size_t error_bytes = error_bins * sizeof(float);
    const dim3 block(block_size);

    int *csr_offsets, *csc_offsets, *csc_rows;
    float *csc_values, *x, *theta, *item_weights;
    check(cudaMalloc((void **)&csr_offsets, (m + 1) * sizeof(int)));
    check(cudaMalloc((void **)&csc_rows, rating_bytes));
    check(cudaMalloc((void **)&csc_offsets, (n + 1) * sizeof(int)));
    check(cudaMalloc((void **)&csc_values, rating_bytes));
    check(cudaMalloc((void **)&theta, theta_bytes));
    check(cudaMalloc((void **)&x, x_bytes));
    check(cudaMalloc((void **)&item_weights, n * sizeof(float)));
    // once: upload
    check(cudaMemcpy(csr_offsets, training.csr_offsets, (m + 1) * sizeof(int), cudaMemcpyHostToDevice));
    // once: upload
    check(cudaMemcpy(csc_rows, training.csc_rows, rating_bytes, cudaMemcpyHostToDevice));
    // once: upload
    check(cudaMemcpy(csc_offsets, training.csc_offsets, (n + 1) * sizeof(int), cudaMemcpyHostToDevice));
    // once: upload
    check(cudaMemcpy(csc_values, training.csc_values, rating_bytes, cudaMemcpyHostToDevice));
    // once: upload
    check(cudaMemcpy(theta, theta_host, theta_bytes, cudaMemcpyHostToDevice));
    // once: upload
    check(cudaMemcpy(x, x_host, x_bytes, cudaMemcpyHostToDevice));
    fill_weights(item_penalty, training.csc_offsets, n, weights_host.items);
    // once: upload
    check(cudaMemcpy(item_weights, weights_host.items, n * sizeof(float), cudaMemcpyHostToDevice));

    vblasHandle_t blas;
    check(vblasCreate(&blas));
    std::vector<float> error_sums(2); /* training, test */
    Errors errors{};
    fill_weights(user_penalty(0), training.csr_offsets, m, weights_host.users);

    float *user_weights = nullptr, *csr_values = nullptr, *y_theta = nullptr, *y_theta_rows = nullptr;
    float *x_grams = nullptr, *y_x = nullptr, *y_x_rows = nullptr, *theta_grams = nullptr;
    float *training_errors = nullptr, *test_errors = nullptr, *test_values = nullptr;
    int *csr_columns = nullptr, *coo_rows = nullptr, *test_rows = nullptr, *test_columns = nullptr;

    for (int iteration = 0; iteration < iterations; ++iteration) {
        /* The original allocates, uploads and frees in every iteration; see variant.h. */
        const bool first = original || iteration == 0;
        const bool last = original || iteration == iterations - 1;
        reference.begin_iteration(user_penalty(iteration), item_penalty);

        /* The rows of X, from Theta. */
        if (first) {
            check(cudaMalloc((void **)&user_weights, m * sizeof(float)));
            check(cudaMalloc((void **)&csr_columns, rating_bytes));
            check(cudaMalloc((void **)&csr_values, rating_bytes));
        }
        // needed: upload that changes
        check(cudaMemcpy(user_weights, weights_host.users, m * sizeof(float), cudaMemcpyHostToDevice));
        fill_weights(user_penalty(iteration + 1), training.csr_offsets, m, weights_host.users);
        if (first) {
            // problem: repeated upload
            check(cudaMemcpy(csr_columns, training.csr_columns, rating_bytes, cudaMemcpyHostToDevice));
            // problem: repeated upload
            check(cudaMemcpy(csr_values, training.csr_values, rating_bytes, cudaMemcpyHostToDevice));
            check(cudaMalloc((void **)&y_theta, x_bytes));
            check(cudaMalloc((void **)&y_theta_rows, x_bytes));
        }
        LAUNCH(multiply_ratings<Half::x>, blocks(m * f), block, 0, 0, csr_offsets, csr_columns, csr_values, theta,
               y_theta, m);
        LAUNCH(transpose, blocks(m * f), block, 0, 0, y_theta, y_theta_rows, m);
        check(cudaGetLastError());
        if (last) {
            // problem: free in the loop
            check(cudaFree(y_theta));
        }
        if (original) {
            // problem: free in the loop
            check(cudaFree(csr_values));
        }
        if (first)
            check(cudaMalloc((void **)&x_grams, m * f * f * sizeof(float)));
        reference.advance(0.069);
        LAUNCH(gram_matrices<Half::x>, blocks(m * f), block, 0, 0, csr_offsets, csr_columns, theta, user_weights,
               x_grams, m);
        check(cudaGetLastError());
        if (original) {
            // problem: needless synchronization
            check(cudaDeviceSynchronize());
        }
        updateXWithCG(x_grams, x, y_theta_rows, m);
        if (last) {
            // problem: free in the loop
            check(cudaFree(x_grams));
            // problem: free in the loop
            check(cudaFree(y_theta_rows));
            // problem: free in the loop
            check(cudaFree(user_weights));
        }
        if (original) {
            // problem: free in the loop
            check(cudaFree(csr_columns));
        }

        /* The rows of Theta, from X. */
        if (first) {
            check(cudaMalloc((void **)&y_x_rows, theta_bytes));
            check(cudaMalloc((void **)&y_x, theta_bytes));
        }
        reference.advance(0.145);
        LAUNCH(multiply_ratings<Half::theta>, blocks(n * f), block, 0, 0, csc_offsets, csc_rows, csc_values, x, y_x, n);
        LAUNCH(transpose, blocks(n * f), block, 0, 0, y_x, y_x_rows, n);
        check(cudaGetLastError());
        if (original) {
            // problem: needless synchronization
            check(cudaDeviceSynchronize());
        }
        if (last) {
            // problem: free in the loop
            check(cudaFree(y_x));
        }
        if (first)
            check(cudaMalloc((void **)&theta_grams, n * f * f * sizeof(float)));
        reference.advance(0.202);
        LAUNCH(gram_matrices<Half::theta>, blocks(n * f), block, 0, 0, csc_offsets, csc_rows, x, item_weights,
               theta_grams, n);
        check(cudaGetLastError());
        if (original) {
            // problem: needless synchronization
            check(cudaDeviceSynchronize());
        }
        updateXWithCG(theta_grams, theta, y_x_rows, n);
        if (last) {
            // problem: free in the loop
            check(cudaFree(theta_grams));
            // problem: free in the loop
            check(cudaFree(y_x_rows));
        }

        /* The error on the training ratings. */
        if (first) {
            check(cudaMalloc((void **)&training_errors, error_bytes));
            check(cudaMalloc((void **)&coo_rows, rating_bytes));
        }
        check(cudaMemset(training_errors, 0, error_bytes));
        reference.advance(0.144);
        if (first) {
            // problem: repeated upload
            check(cudaMemcpy(coo_rows, training.coo_rows, rating_bytes, cudaMemcpyHostToDevice));
        }
        if (original) {
            check(cudaMalloc((void **)&csr_columns, rating_bytes));
            check(cudaMalloc((void **)&csr_values, rating_bytes));
        }
        reference.advance(0.148);
        if (original) {
            // problem: repeated upload
            check(cudaMemcpy(csr_columns, training.csr_columns, rating_bytes, cudaMemcpyHostToDevice));
            // problem: repeated upload
            check(cudaMemcpy(csr_values, training.csr_values, rating_bytes, cudaMemcpyHostToDevice));
        }
        LAUNCH(add_squared_errors, blocks(error_bins), block, 0, 0, coo_rows, csr_columns, csr_values, x, theta,
               training_errors, nnz, error_bins);
        check(cudaGetLastError());
        if (original) {
            // problem: needless synchronization
            check(cudaDeviceSynchronize());
        }
        if (last) {
            // problem: free in the loop
            check(cudaFree(coo_rows));
            // problem: free in the loop
            check(cudaFree(csr_columns));
            // problem: free in the loop
            check(cudaFree(csr_values));
        }
        // needed: result used at once
        check(vblasSasum(blas, error_bins, training_errors, 1, &error_sums[0]));
        errors.training = root_mean(error_sums[0], nnz);
        if (iteration == 0)
            errors.first_training = errors.training;
        std::printf("iteration %d: training RMSE %.7f", iteration + 1, errors.training);
        if (original) {
            // problem: needless synchronization
            check(cudaDeviceSynchronize());
        }
        if (last) {
            // problem: free in the loop
            check(cudaFree(training_errors));
        }

        /* The error on the test ratings, which lie in pageable memory. */
        if (first) {
            check(cudaMalloc((void **)&test_errors, error_bytes));
            check(cudaMalloc((void **)&test_rows, test_bytes));
        }
        check(cudaMemset(test_errors, 0, error_bytes));
        reference.advance(0.145);
        if (first) {
            // problem: repeated upload
            check(cudaMemcpy(test_rows, test.rows.data(), test_bytes, cudaMemcpyHostToDevice));
            check(cudaMalloc((void **)&test_columns, test_bytes));
            check(cudaMalloc((void **)&test_values, test_bytes));
        }
        reference.finish_iteration();
        if (first) {
            // problem: repeated upload
            check(cudaMemcpy(test_columns, test.columns.data(), test_bytes, cudaMemcpyHostToDevice));
            // problem: repeated upload
            check(cudaMemcpy(test_values, test.values.data(), test_bytes, cudaMemcpyHostToDevice));
        }
        LAUNCH(add_squared_errors, blocks(error_bins), block, 0, 0, test_rows, test_columns, test_values, x, theta,
               test_errors, nnz_test, error_bins);
        check(cudaGetLastError());
        if (original) {
            // problem: needless synchronization
            check(cudaDeviceSynchronize());
        }
        if (last) {
            // problem: free in the loop
            check(cudaFree(test_rows));
            // problem: free in the loop
            check(cudaFree(test_columns));
            // problem: free in the loop
            check(cudaFree(test_values));
        }
        // needed: result used at once
        check(vblasSasum(blas, error_bins, test_errors, 1, &error_sums[1]));
        errors.test = root_mean(error_sums[1], nnz_test);
        std::printf(", test RMSE %.7f\n", errors.test);
        if (original) {
            // problem: needless synchronization
            check(cudaDeviceSynchronize());
        }
        if (last) {
            // problem: free in the loop
            check(cudaFree(test_errors));
        }
    }

    // needed: result used after the next wait
    check(cudaMemcpy(theta_host, theta, theta_bytes, cudaMemcpyDeviceToHost));
    // needed: result used after the next wait
    check(cudaMemcpy(x_host, x, x_bytes, cudaMemcpyDeviceToHost));
    // once: teardown
    check(vblasDestroy(blas));
    // once: teardown
    check(cudaFree(item_weights));
    // once: teardown
    check(cudaFree(theta));
    // once: teardown
    check(cudaFree(x));
    // once: teardown
    check(cudaFree(csc_values));
    // once: teardown
    check(cudaFree(csc_offsets));
    // once: teardown
    check(cudaFree(csc_rows));
    // once: teardown
    check(cudaFree(csr_offsets));
    return errors;
}
