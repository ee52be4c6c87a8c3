#include "cg.h"

#include "check.h"
#include "portable_kernel.h"
#include "ratings.h"
#include "variant.h"

namespace
{

constexpr int f = factor_count;
constexpr int block_size = 64;

} // namespace

/* One thread for each system; as many steps as unknowns, so that only rounding remains. */
__global__ void conjugate_gradients(const float *matrices, float *x, const float *right_hand_sides, int systems)
{
    const int system = blockIdx.x * blockDim.x + threadIdx.x;
    if (system >= systems)
        return;
    const float *a = matrices + system * f * f;
    float solution[f], residual[f], direction[f], product[f];
    float squared = 0;
    for (int i = 0; i < f; ++i)
        solution[i] = x[system * f + i];
    for (int i = 0; i < f; ++i) {
        float sum = 0;
        for (int j = 0; j < f; ++j)
            sum += a[j * f + i] * solution[j];
        residual[i] = direction[i] = right_hand_sides[system * f + i] - sum;
        squared += residual[i] * residual[i];
    }
    for (int step = 0; step < f && squared > 1e-12f; ++step) {
        for (int i = 0; i < f; ++i)
            product[i] = 0;
        for (int j = 0; j < f; ++j)
            for (int i = 0; i < f; ++i)
                product[i] += a[j * f + i] * direction[j];
        float curvature = 0;
        for (int i = 0; i < f; ++i)
            curvature += direction[i] * product[i];
        const float length = squared / curvature;
        float remaining = 0;
        for (int i = 0; i < f; ++i) {
            solution[i] += length * direction[i];
            residual[i] -= length * product[i];
            remaining += residual[i] * residual[i];
        }
        for (int i = 0; i < f; ++i)
            direction[i] = residual[i] + remaining / squared * direction[i];
        squared = remaining;
    }
    for (int i = 0; i < f; ++i)
        x[system * f + i] = solution[i];
}
PORTABLE_KERNEL(conjugate_gradients);

void updateXWithCG(const float *matrices, float *x, const float *right_hand_sides, int systems)
{
    LAUNCH(conjugate_gradients, dim3((systems - 1) / block_size + 1), dim3(block_size), 0, 0, matrices, x,
           right_hand_sides, systems);
    check(cudaGetLastError());
    if (original) {
        // problem: needless synchronization
        check(cudaDeviceSynchronize());
    }
}
