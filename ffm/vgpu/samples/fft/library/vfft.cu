#include "vfft.h"

#include <cmath>
#include <cstddef>
#include <vector>

#include "portable_kernel.h"

#ifndef VFFT_ASYNC
#define VFFT_ASYNC 0
#endif

#define VFFT_EXPORT extern "C" __attribute__((visibility("default"))) int

namespace
{

constexpr int points = VFFT_POINTS;
constexpr int levels = 6; /* points = 2^levels */
static_assert(1 << levels == points);
constexpr std::size_t transform_bytes = sizeof(float2) * points * points;

} // namespace

struct vfftPlan {
    float2 *data;
    float2 *roots; /* points / 2 roots of unity */
};

/* One thread for each line, whose points lie `stride` apart; lines lie `line_distance` apart. Decimation in time. */
static __global__ void transform_lines(float2 *data, const float2 *roots, int line_distance, int stride)
{
    float2 *line = data + (blockIdx.x * blockDim.x + threadIdx.x) * line_distance;
    float2 values[points];
    for (int index = 0; index < points; ++index) {
        int reversed = 0;
        for (int bit = 0; bit < levels; ++bit)
            reversed |= (index >> bit & 1) << (levels - 1 - bit);
        values[reversed] = line[index * stride];
    }
    for (int half = 1; half < points; half *= 2) {
        for (int start = 0; start < points; start += 2 * half) {
            for (int index = 0; index < half; ++index) {
                const float2 root = roots[index * (points / 2 / half)];
                const float2 upper = values[start + index], lower = values[start + index + half];
                const float real = lower.x * root.x - lower.y * root.y, imaginary = lower.x * root.y + lower.y * root.x;
                values[start + index] = {upper.x + real, upper.y + imaginary};
                values[start + index + half] = {upper.x - real, upper.y - imaginary};
            }
        }
    }
    for (int index = 0; index < points; ++index)
        line[index * stride] = {values[index].x * 0.125f, values[index].y * 0.125f};
}
PORTABLE_KERNEL(transform_lines);

static cudaError_t copy(void *to, const void *from, cudaMemcpyKind kind)
{
    return VFFT_ASYNC ? cudaMemcpyAsync(to, from, transform_bytes, kind, 0)
                      : cudaMemcpy(to, from, transform_bytes, kind);
}

VFFT_EXPORT vfftPlan2d(vfftHandle_t *plan)
{
    std::vector<float2> roots(points / 2);
    for (int index = 0; index < points / 2; ++index) {
        const double angle = -2 * 3.14159265358979323846 * index / points;
        roots[index] = {static_cast<float>(std::cos(angle)), static_cast<float>(std::sin(angle))};
    }
    vfftPlan made{};
    cudaError_t error = cudaMalloc((void **)&made.data, transform_bytes);
    if (error == cudaSuccess)
        error = cudaMalloc((void **)&made.roots, roots.size() * sizeof(float2));
    if (error == cudaSuccess)
        error = cudaMemcpy(made.roots, roots.data(), roots.size() * sizeof(float2), cudaMemcpyHostToDevice);
    if (error == cudaSuccess)
        *plan = new vfftPlan(made);
    return error;
}

VFFT_EXPORT vfftDestroy(vfftHandle_t plan)
{
    const cudaError_t roots = cudaFree(plan->roots), data = cudaFree(plan->data);
    delete plan;
    return roots != cudaSuccess ? roots : data;
}

VFFT_EXPORT vfftExecute(vfftHandle_t plan, const float *in, float *out)
{
    cudaError_t error = copy(plan->data, in, cudaMemcpyHostToDevice);
    if (error != cudaSuccess)
        return error;
    LAUNCH(transform_lines, dim3(1), dim3(points), 0, 0, plan->data, plan->roots, points, 1);
    LAUNCH(transform_lines, dim3(1), dim3(points), 0, 0, plan->data, plan->roots, 1, points);
    error = cudaGetLastError();
    return error != cudaSuccess ? error : copy(out, plan->data, cudaMemcpyDeviceToHost);
}
