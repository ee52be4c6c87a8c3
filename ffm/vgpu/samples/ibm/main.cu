/* ibm [STEPS]: the flow around a moving body by an immersed boundary method, as cuIBM does it: nearly all of
 * its CUDA calls are in a template library, which allocates and frees temporaries in each call.
 *
 * Prints the flow's sum and checksum. Exit status: 0 when the flow agrees with one computed on the CPU, 1
 * when it does not, 2 for wrong arguments or a failed CUDA call.
 */
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <vector>

#include "algorithms.h"
#include "arguments.h"
#include "checksum.h"
#include "flow.h"

/* Squared residuals at which the solvers stop. */
constexpr float viscous_tolerance = 1e-8f;
constexpr double potential_tolerance = 1e-9;
constexpr int iteration_limit = 100;

constexpr double tolerated_difference = 1e-3;

/* What the markers in each cell do to the flow. */
__global__ void pull_along(const int *marker_counts, const float *velocity, float *right_side)
{
    const int cell = blockIdx.x * blockDim.x + threadIdx.x;
    if (cell < cells)
        right_side[cell] = velocity[cell] + float(time_step * marker_strength) * marker_counts[cell] *
                                                (float(body_velocity) - velocity[cell]);
}
PORTABLE_KERNEL(pull_along);

__global__ void find_differences(const float *velocity, double *differences)
{
    const int cell = blockIdx.x * blockDim.x + threadIdx.x;
    if (cell < cells)
        differences[cell] = difference(velocity, cell);
}
PORTABLE_KERNEL(find_differences);

__global__ void add_gradient(const double *potential, float *velocity)
{
    const int cell = blockIdx.x * blockDim.x + threadIdx.x;
    if (cell < cells)
        velocity[cell] += float(potential_weight * difference(potential, cell));
}
PORTABLE_KERNEL(add_gradient);

static std::vector<int> counted(int count)
{
    std::vector<int> numbers(count);
    for (int index = 0; index < count; ++index)
        numbers[index] = index;
    return numbers;
}

/* Runs all steps of time and returns the velocity in each cell. */
static std::vector<float> simulate(int steps, ReferenceFlow &reference)
{
    using namespace sparse;
    const Entries viscous_entries = make_laplacian(1, viscosity),
                  potential_entries = make_laplacian(compressibility, 1);
    const std::vector<float> viscous_values(viscous_entries.values.begin(), viscous_entries.values.end());
    const coo_matrix<float> viscous(cells, viscous_entries.rows, viscous_entries.columns, viscous_values);
    const coo_matrix<double> laplacian(cells, potential_entries.rows, potential_entries.columns,
                                       potential_entries.values);
    std::vector<int> marked = marker_cells(0);
    coo_matrix<int> incidence(cells, marked, counted(markers), std::vector<int>(markers, 1));
    const device_vector<int> ones{std::vector<int>(markers, 1)}, cell_ones{std::vector<int>(cells, 1)};
    device_vector<int> counts(cells);
    device_vector<float> velocity{std::vector<float>(cells)}, pulled(cells);
    device_vector<double> potential{std::vector<double>(cells)}, differences(cells);
    solver_workspace<float> viscous_workspace(cells);
    solver_workspace<double> potential_workspace(cells);
    const auto meanwhile = [&reference] { reference.advance(); };
    const dim3 block(block_size);

    for (int step = 0; step < steps; ++step) {
        // needed: upload that changes
        check(cudaMemcpy(incidence.row_indices.data(), marked.data(), markers * sizeof(int), cudaMemcpyHostToDevice));
        marked = marker_cells(step + 1);
        multiply(incidence, ones, counts);
        if (dot(counts, cell_ones) != markers) {
            std::fprintf(stderr, "ibm: markers were lost in step %d\n", step);
            std::exit(1);
        }
        LAUNCH(pull_along, blocks(cells), block, 0, 0, counts.data(), velocity.data(), pulled.data());
        conjugate_gradients(viscous, velocity, pulled, viscous_workspace, viscous_tolerance, iteration_limit,
                            meanwhile);
        LAUNCH(find_differences, blocks(cells), block, 0, 0, velocity.data(), differences.data());
        conjugate_gradients(laplacian, potential, differences, potential_workspace, potential_tolerance,
                            iteration_limit, meanwhile);
        LAUNCH(add_gradient, blocks(cells), block, 0, 0, potential.data(), velocity.data());
        check(cudaGetLastError());
    }
    std::vector<float> result(cells);
    // needed: result used at once
    check(cudaMemcpy(result.data(), velocity.data(), cells * sizeof(float), cudaMemcpyDeviceToHost));
    return result;
}

int main(int count, char **arguments)
{
    const int steps = count_argument(count, arguments, "STEPS", 1, 8);
    ReferenceFlow reference(steps);
    const std::vector<float> velocity = simulate(steps, reference);
    sparse::free_kept_temporaries();
    reference.finish();
    double sum = 0, worst = 0;
    for (int cell = 0; cell < cells; ++cell) {
        sum += velocity[cell];
        worst = std::fmax(worst, std::fabs(velocity[cell] - reference.velocity()[cell]));
    }
    std::printf("%d steps, sum %.6f, checksum %016llx\n", steps, sum,
                static_cast<unsigned long long>(checksum(velocity.data(), cells * sizeof(float))));
    if (worst <= tolerated_difference)
        return 0;
    std::fprintf(stderr, "ibm: the flow differs from the reference by %g\n", worst);
    return 1;
}
