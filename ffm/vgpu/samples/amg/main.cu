/* amg [STEPS]: steps of the heat equation by a multigrid method whose coarsest grid is solved on the CPU. As in AMG
 * with hypre, that grid lies in managed memory, and is cleared with cudaMemset, which waits for the GPU there.
 *
 * Runs as one process, or as several ranks of a parallel program, each with a square of its own; they do not
 * communicate. Prints the remaining residual and a checksum. Exit status: 0 when the solution agrees with one computed
 * on the CPU, 1 when it does not, 2 for wrong arguments or a failed CUDA call.
 */
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "arguments.h"
#include "check.h"
#include "checksum.h"
#include "grid.h"
#include "kernels.h"
#include "variant.h"

constexpr int coarsest = level_count - 1;
constexpr int cycles = 6; /* in a step of time */
constexpr int reference_iterations = 8;
constexpr std::size_t coarsest_bytes = points_of(coarsest) * sizeof(float);

/* Six cycles leave some 1e-5. */
constexpr double tolerated_difference = 1e-3;

/* A grid: `other` is where the smoother writes before the two change places. */
struct Level {
    float *x, *other, *right_side;
};

/* The number of this process among those that a launcher has started, by the variable that the launcher sets. */
static int rank_of_process()
{
    for (const char *name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"})
        if (const char *value = std::getenv(name))
            return std::atoi(value);
    return 0;
}

static float *device_grid(int level)
{
    float *grid;
    check(cudaMalloc((void **)&grid, points_of(level) * sizeof(float)));
    check(cudaMemset(grid, 0, points_of(level) * sizeof(float)));
    return grid;
}

static float *managed_grid(int level)
{
    float *grid;
    check(cudaMallocManaged((void **)&grid, points_of(level) * sizeof(float), cudaMemAttachGlobal));
    return grid;
}

template <int level> static void smooth_twice(Level &grid)
{
    for (int sweep = 0; sweep < 2; ++sweep) {
        LAUNCH(smooth<level>, blocks(points_of(level)), dim3(block_size), 0, 0, grid.x, grid.other, grid.right_side);
        std::swap(grid.x, grid.other);
    }
}

/* One cycle down to the coarsest grid and up again. The CPU's own work is a part of the reference's. */
static void cycle(Level levels[level_count], ReferenceHeat &reference)
{
    Level &fine = levels[0], &middle = levels[1], &coarse = levels[coarsest];
    smooth_twice<0>(fine);
    LAUNCH(restrict_residual<0>, blocks(points_of(1)), dim3(block_size), 0, 0, fine.x, fine.right_side,
           middle.right_side);
    check(cudaMemsetAsync(middle.x, 0, points_of(1) * sizeof(float), 0));
    smooth_twice<1>(middle);
    if (original) {
        // problem: set of managed memory
        check(cudaMemset(coarse.x, 0, coarsest_bytes));
    } else {
        std::memset(coarse.x, 0, coarsest_bytes);
    }
    reference.advance(reference_iterations);
    LAUNCH(restrict_residual<1>, blocks(points_of(coarsest)), dim3(block_size), 0, 0, middle.x, middle.right_side,
           coarse.right_side);
    // needed: result used at once
    check(cudaDeviceSynchronize());
    solve_coarsest(coarse.right_side, coarse.x);
    LAUNCH(add_coarse<1>, blocks(points_of(1)), dim3(block_size), 0, 0, coarse.x, middle.x);
    smooth_twice<1>(middle);
    LAUNCH(add_coarse<0>, blocks(points_of(0)), dim3(block_size), 0, 0, middle.x, fine.x);
    smooth_twice<0>(fine);
    check(cudaGetLastError());
}

/* The norm of the finest grid's residual; waits for the GPU. */
static double residual_norm(const Level &fine, float *row_sums)
{
    LAUNCH(square_rows, blocks(fine_width), dim3(block_size), 0, 0, fine.x, fine.right_side, row_sums);
    std::vector<float> sums(fine_width);
    // needed: result used at once
    check(cudaMemcpy(sums.data(), row_sums, fine_width * sizeof(float), cudaMemcpyDeviceToHost));
    double sum = 0;
    for (float value : sums)
        sum += value;
    return std::sqrt(sum);
}

int main(int count, char **arguments)
{
    const int steps = count_argument(count, arguments, "STEPS", 1, 140);
    const int rank = rank_of_process();
    Level levels[level_count];
    for (int level = 0; level < coarsest; ++level)
        levels[level] = {device_grid(level), device_grid(level), device_grid(level)};
    levels[coarsest] = {managed_grid(coarsest), nullptr, managed_grid(coarsest)};
    float *row_sums = nullptr;
    check(cudaMalloc((void **)&row_sums, fine_width * sizeof(float)));

    ReferenceHeat reference(rank);
    Level &fine = levels[0];
    std::vector<float> x(points_of(0));
    double norm = 0, worst = 0;
    for (int step = 0; step < steps; ++step) {
        LAUNCH(heat_up, blocks(points_of(0)), dim3(block_size), 0, 0, fine.x, fine.right_side, rank, step);
        reference.begin(step);
        for (int repeated = 0; repeated < cycles; ++repeated) {
            cycle(levels, reference);
            norm = residual_norm(fine, row_sums);
        }
        // needed: result used at once
        check(cudaMemcpy(x.data(), fine.x, x.size() * sizeof(float), cudaMemcpyDeviceToHost));
        worst = std::fmax(worst, reference.finish(x.data()));
    }
    for (const Level &level : levels) {
        for (float *grid : {level.x, level.other, level.right_side}) {
            // once: teardown
            check(cudaFree(grid));
        }
    }
    // once: teardown
    check(cudaFree(row_sums));
    std::printf("rank %d, %d steps, residual %.3e, checksum %016llx\n", rank, steps, norm,
                static_cast<unsigned long long>(checksum(x.data(), x.size() * sizeof(float))));
    if (worst <= tolerated_difference)
        return 0;
    std::fprintf(stderr, "amg: the solution differs from the reference by %g\n", worst);
    return 1;
}
