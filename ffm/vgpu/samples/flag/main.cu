/* flag [STEPS]: molecular dynamics of particles on a plane. As in HOOMD-blue, the kernel that lists each particle's
 * neighbours says in a status word in mapped memory whether the lists were long enough, and the program waits for it.
 *
 * Prints the energy of motion and a checksum. Exit status: 0 when each step agrees with one computed on the CPU, 1 when
 * one does not, 2 for wrong arguments or a failed CUDA call.
 */
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <utility>
#include <vector>

#include "arguments.h"
#include "check.h"
#include "checksum.h"
#include "particles.h"
#include "portable_kernel.h"
#include "variant.h"

constexpr int block_size = 64;
constexpr int first_capacity = 2; /* too small, which the first step finds out */
constexpr std::size_t particle_bytes = particle_count * sizeof(Particle);

/* Single precision leaves some 1e-6 in a step. */
constexpr double tolerated_difference = 1e-4;

/* lists[i * capacity ...] = the particles within reach of particle i. Sets `*overflow` where more than `capacity` are:
 * the list then lacks some. One thread for each particle. */
__global__ void list_neighbours(const Particle *particles, int *counts, int *lists, int capacity, int *overflow)
{
    const int one = blockIdx.x * blockDim.x + threadIdx.x;
    int count = 0;
    for (int other = 0; other < particle_count; ++other) {
        const float x = shortest(particles[one].x, particles[other].x);
        const float y = shortest(particles[one].y, particles[other].y);
        if (other == one || x * x + y * y >= float(reach * reach))
            continue;
        if (count == capacity) {
            *overflow = 1;
            break;
        }
        lists[one * capacity + count++] = other;
    }
    counts[one] = count;
}
PORTABLE_KERNEL(list_neighbours);

/* Where each particle is after the step; one thread for each. */
__global__ void move_particles(const Particle *particles, Particle *moved, const int *counts, const int *lists,
                               int capacity)
{
    const int one = blockIdx.x * blockDim.x + threadIdx.x;
    Particle particle = particles[one];
    for (int index = 0; index < counts[one]; ++index) {
        const Particle other = particles[lists[one * capacity + index]];
        const float x = shortest(particles[one].x, other.x), y = shortest(particles[one].y, other.y);
        const float change = float(time_step) * push(sqrtf(x * x + y * y));
        particle.x_velocity -= change * x;
        particle.y_velocity -= change * y;
    }
    particle.x = wrapped(particle.x + float(time_step) * particle.x_velocity);
    particle.y = wrapped(particle.y + float(time_step) * particle.y_velocity);
    moved[one] = particle;
}
PORTABLE_KERNEL(move_particles);

/* What the kernels work on. */
struct DeviceState {
    Particle *particles, *moved;
    int *counts, *lists;
    int capacity;
    volatile int *overflow; /* in mapped host memory */
    int *overflow_on_device;
};

static DeviceState make_state(const std::vector<Particle> &particles)
{
    DeviceState state{};
    state.capacity = first_capacity;
    check(cudaMalloc((void **)&state.particles, particle_bytes));
    check(cudaMalloc((void **)&state.moved, particle_bytes));
    check(cudaMalloc((void **)&state.counts, particle_count * sizeof(int)));
    check(cudaMalloc((void **)&state.lists, particle_count * state.capacity * sizeof(int)));
    check(cudaHostAlloc((void **)&state.overflow, sizeof(int), cudaHostAllocMapped));
    check(cudaHostGetDevicePointer((void **)&state.overflow_on_device, const_cast<int *>(state.overflow), 0));
    *state.overflow = 0;
    // once: upload
    check(cudaMemcpy(state.particles, particles.data(), particle_bytes, cudaMemcpyHostToDevice));
    return state;
}

static void free_state(const DeviceState &state)
{
    // once: teardown
    check(cudaFree(state.particles));
    // once: teardown
    check(cudaFree(state.moved));
    // once: teardown
    check(cudaFree(state.counts));
    // once: teardown
    check(cudaFree(state.lists));
    // once: teardown
    check(cudaFreeHost(const_cast<int *>(state.overflow)));
}

/* Makes the lists longer when the GPU has found them too short, and says so. The GPU must be idle. */
static bool grow_if_needed(DeviceState &state)
{
    if (*state.overflow == 0)
        return false;
    // once: replaced by a larger block
    check(cudaFree(state.lists));
    state.capacity *= 2;
    check(cudaMalloc((void **)&state.lists, particle_count * state.capacity * sizeof(int)));
    *state.overflow = 0;
    return true;
}

static void launch_lists(const DeviceState &state)
{
    LAUNCH(list_neighbours, dim3(particle_count / block_size), dim3(block_size), 0, 0, state.particles, state.counts,
           state.lists, state.capacity, state.overflow_on_device);
}

static void launch_motion(const DeviceState &state)
{
    LAUNCH(move_particles, dim3(particle_count / block_size), dim3(block_size), 0, 0, state.particles, state.moved,
           state.counts, state.lists, state.capacity);
    check(cudaGetLastError());
}

/* One step of time, of which `particles` are the state before and then after; returns the difference to the
 * reference. */
static double step(DeviceState &state, std::vector<Particle> &particles, ReferenceStep &reference)
{
    bool predicted = false;
    do {
        do {
            launch_lists(state);
            if (original) {
                // needed: status that hardly changes [flag_fixed]
                check(cudaDeviceSynchronize());
            }
        } while (original && grow_if_needed(state));
        launch_motion(state);
        if (!predicted)
            reference.predict(particles);
        predicted = true;
        // needed: result used at once
        check(cudaMemcpy(particles.data(), state.moved, particle_bytes, cudaMemcpyDeviceToHost));
    } while (!original && grow_if_needed(state));
    std::swap(state.particles, state.moved);
    return reference.difference(particles);
}

int main(int count, char **arguments)
{
    const int steps = count_argument(count, arguments, "STEPS", 1, 1200);
    std::vector<Particle> particles = make_particles();
    ReferenceStep reference;
    DeviceState state = make_state(particles);
    double worst = 0;
    for (int index = 0; index < steps; ++index)
        worst = std::max(worst, step(state, particles, reference));
    free_state(state);
    std::printf("%d steps, energy %.6f, checksum %016llx\n", steps, kinetic_energy(particles),
                static_cast<unsigned long long>(checksum(particles.data(), particle_bytes)));
    if (worst <= tolerated_difference)
        return 0;
    std::fprintf(stderr, "flag: a step differs from the reference by %g\n", worst);
    return 1;
}
