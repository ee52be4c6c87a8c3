/* fft [STEPS]: applies a potential to electron bands, with a Fourier transform of each band in each step by a closed
 * library that uploads, computes and downloads, as Qbox does with cuFFT.
 *
 * Prints the density of the last step and a checksum. Exit status: 0 when the bands agree with those computed on the
 * CPU, 1 when they do not, 2 for wrong arguments or a failed CUDA call.
 */
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "arguments.h"
#include "bands.h"
#include "check.h"
#include "checksum.h"
#include "variant.h"
#include "vfft.h"

constexpr std::size_t band_floats = 2 * band_points;

/* Root mean square difference, of points with a magnitude of 1 / 64. */
constexpr double tolerated_difference = 1e-6;

static void check_library(int status)
{
    check(static_cast<cudaError_t>(status));
}

static float *allocate_bands()
{
    const std::size_t bytes = band_count * band_floats * sizeof(float);
    void *memory = nullptr;
    if (original)
        memory = std::malloc(bytes);
    else
        check(cudaMallocHost(&memory, bytes));
    if (!memory) {
        std::fprintf(stderr, "fft: out of memory\n");
        std::exit(2);
    }
    return static_cast<float *>(memory);
}

static void free_bands(float *bands)
{
    if (original)
        std::free(bands);
    else
        check(cudaFreeHost(bands));
}

static void apply_potential(int step, int band, float *values)
{
    for (int point = 0; point < band_points; ++point) {
        const std::complex<float> factor = phase(step, band, point);
        const float real = values[2 * point], imaginary = values[2 * point + 1];
        values[2 * point] = real * factor.real() - imaginary * factor.imag();
        values[2 * point + 1] = real * factor.imag() + imaginary * factor.real();
    }
}

/* The mean over all bands of a point's density, added up with weights that tell the points apart. */
static double weighted_density(const float *bands)
{
    double sum = 0;
    for (std::size_t index = 0; index < band_count * band_floats; ++index)
        sum += static_cast<double>(bands[index]) * bands[index] * (index / 2 % VFFT_POINTS);
    return sum / band_count;
}

static void run(int steps, float *bands, ReferenceBands &reference)
{
    vfftHandle_t plan;
    // once: upload
    check_library(vfftPlan2d(&plan));
    double density = 0;
    for (int step = 0; step < steps; ++step) {
        for (int band = 0; band < band_count; ++band) {
            float *values = bands + band * band_floats;
            apply_potential(step, band, values);
            // problem: library waits for each result
            check_library(vfftExecute(plan, values, values));
            reference.advance(step, band);
        }
        if (!original)
            check(cudaDeviceSynchronize());
        density = weighted_density(bands);
    }
    std::printf("%d steps, weighted density %.6f", steps, density);
    // once: teardown
    check_library(vfftDestroy(plan));
}

int main(int count, char **arguments)
{
    const int steps = count_argument(count, arguments, "STEPS", 1, 60);
    float *bands = allocate_bands();
    for (int band = 0; band < band_count; ++band) {
        for (int point = 0; point < band_points; ++point) {
            const std::complex<double> value = initial_point(band, point);
            bands[band * band_floats + 2 * point] = static_cast<float>(value.real());
            bands[band * band_floats + 2 * point + 1] = static_cast<float>(value.imag());
        }
    }
    ReferenceBands reference;
    run(steps, bands, reference);
    double squares = 0;
    for (int band = 0; band < band_count; ++band)
        for (int point = 0; point < band_points; ++point) {
            const std::size_t index = band * band_floats + 2 * point;
            squares += std::norm(std::complex<double>(bands[index], bands[index + 1]) - reference.point(band, point));
        }
    const double difference = std::sqrt(squares / (band_count * band_points));
    std::printf(", checksum %016llx\n",
                static_cast<unsigned long long>(checksum(bands, band_count * band_floats * sizeof(float))));
    free_bands(bands);
    if (difference <= tolerated_difference)
        return 0;
    std::fprintf(stderr, "fft: the bands differ from the reference by %g\n", difference);
    return 1;
}
