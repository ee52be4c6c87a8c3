/* gaussian [UNKNOWNS]: solves a system of linear equations by Gaussian elimination, as Rodinia's benchmark of
 * this name does: two kernels for each column, and a device synchronization after each.
 *
 * Prints the solution's sum and checksum. Exit status: 0 when the solution agrees with one computed on the
 * CPU, 1 when it does not, 2 for wrong arguments or a failed CUDA call.
 */
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <vector>

#include "arguments.h"
#include "check.h"
#include "checksum.h"
#include "portable_kernel.h"
#include "system.h"
#include "variant.h"

namespace
{

constexpr int line_block = 256;
constexpr int tile_block = 16;

/* Single precision leaves some 1e-6 for these well conditioned systems. */
constexpr double tolerated_difference = 1e-4;

unsigned blocks(int threads, int block)
{
    return static_cast<unsigned>((threads - 1) / block + 1);
}

} // namespace

/* factors[row] = what row `column` is multiplied with before it is taken from `row`: one thread for each row.
 */
__global__ void find_factors(const float *matrix, float *factors, int unknowns, int column)
{
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row > column && row < unknowns)
        factors[row] = matrix[row * unknowns + column] / matrix[column * unknowns + column];
}
PORTABLE_KERNEL(find_factors);

/* Takes multiples of row `column` from all rows below: one thread for each element. */
__global__ void subtract_row(float *matrix, float *right_side, const float *factors, int unknowns, int column)
{
    const int other = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row <= column || row >= unknowns || other < column || other >= unknowns)
        return;
    matrix[row * unknowns + other] -= factors[row] * matrix[column * unknowns + other];
    if (other == column)
        right_side[row] -= factors[row] * right_side[column];
}
PORTABLE_KERNEL(subtract_row);

/* Brings the system on the device into triangular form, while the reference does the same on the CPU. */
static void eliminate(float *matrix, float *right_side, float *factors, int unknowns, ReferenceElimination &reference)
{
    const dim3 line(blocks(unknowns, line_block)), tiles(blocks(unknowns, tile_block), blocks(unknowns, tile_block));
    for (int column = 0; column < unknowns - 1; ++column) {
        LAUNCH(find_factors, line, dim3(line_block), 0, 0, matrix, factors, unknowns, column);
        if (original) {
            // problem: needless synchronization
            check(cudaDeviceSynchronize());
        }
        LAUNCH(subtract_row, tiles, dim3(tile_block, tile_block), 0, 0, matrix, right_side, factors, unknowns, column);
        if (original) {
            // problem: needless synchronization
            check(cudaDeviceSynchronize());
        }
        check(cudaGetLastError());
        reference.eliminate_column(column);
    }
}

static std::vector<double> solve(const LinearSystem &system, ReferenceElimination &reference)
{
    const int unknowns = system.unknowns;
    const std::size_t matrix_bytes = system.matrix.size() * sizeof(float), line_bytes = unknowns * sizeof(float);
    float *matrix, *right_side, *factors;
    check(cudaMalloc((void **)&matrix, matrix_bytes));
    check(cudaMalloc((void **)&right_side, line_bytes));
    check(cudaMalloc((void **)&factors, line_bytes));
    // once: upload
    check(cudaMemcpy(matrix, system.matrix.data(), matrix_bytes, cudaMemcpyHostToDevice));
    // once: upload
    check(cudaMemcpy(right_side, system.right_side.data(), line_bytes, cudaMemcpyHostToDevice));

    eliminate(matrix, right_side, factors, unknowns, reference);

    std::vector<float> triangle(system.matrix.size()), result(unknowns);
    // needed: result used after the next wait
    check(cudaMemcpy(triangle.data(), matrix, matrix_bytes, cudaMemcpyDeviceToHost));
    // needed: result used at once
    check(cudaMemcpy(result.data(), right_side, line_bytes, cudaMemcpyDeviceToHost));
    std::vector<double> solution =
        substitute_back({triangle.begin(), triangle.end()}, std::vector<double>(result.begin(), result.end()));
    // once: teardown
    check(cudaFree(factors));
    // once: teardown
    check(cudaFree(right_side));
    // once: teardown
    check(cudaFree(matrix));
    return solution;
}

int main(int count, char **arguments)
{
    const LinearSystem system = make_system(count_argument(count, arguments, "UNKNOWNS", 2, 240));
    ReferenceElimination reference(system);
    const std::vector<double> solution = solve(system, reference);
    const std::vector<double> expected = reference.solution();
    double sum = 0, difference = 0;
    for (int row = 0; row < system.unknowns; ++row) {
        sum += solution[row];
        difference = std::fmax(difference, std::fabs(solution[row] - expected[row]));
    }
    std::printf("%d unknowns, sum %.6f, checksum %016llx\n", system.unknowns, sum,
                static_cast<unsigned long long>(checksum(solution.data(), solution.size() * sizeof(double))));
    if (difference <= tolerated_difference)
        return 0;
    std::fprintf(stderr, "gaussian: the solution differs from the reference by %g\n", difference);
    return 1;
}
