#include "bands.h"

#include <cmath>

namespace
{

constexpr int points = VFFT_POINTS;
constexpr double pi = 3.14159265358979323846;

} // namespace

std::complex<double> initial_point(int band, int point)
{
    const int row = point / points, column = point % points;
    return std::polar(1.0 / points, 2 * pi * ((band + 1) * row * row + 3 * band * column + row * column) / 61.0);
}

std::complex<float> phase(int step, int band, int point)
{
    const int row = point / points, column = point % points;
    return std::polar(1.0f, 0.3f * std::sin(0.1f * static_cast<float>((row + band) * (column + 1) % 97 + step)));
}

ReferenceBands::ReferenceBands() : roots_(points / 2), bands_(band_count)
{
    for (int index = 0; index < points / 2; ++index)
        roots_[index] = std::polar(1.0, -2 * pi * index / points);
    for (int band = 0; band < band_count; ++band)
        for (int point = 0; point < band_points; ++point)
            bands_[band].push_back(initial_point(band, point));
}

/* Decimation in frequency (the library decimates in time), scaled by 1 / sqrt(points). */
void ReferenceBands::transform_line(std::complex<double> *first, int stride) const
{
    std::complex<double> values[points];
    for (int index = 0; index < points; ++index)
        values[index] = first[index * stride];
    for (int half = points / 2; half >= 1; half /= 2) {
        for (int start = 0; start < points; start += 2 * half) {
            for (int index = 0; index < half; ++index) {
                const std::complex<double> upper = values[start + index], lower = values[start + index + half];
                const std::complex<double> difference = upper - lower, root = roots_[index * (points / 2 / half)];
                values[start + index] = upper + lower;
                values[start + index + half] = {difference.real() * root.real() - difference.imag() * root.imag(),
                                                difference.real() * root.imag() + difference.imag() * root.real()};
            }
        }
    }
    for (int index = 0, reversed = 0; index < points; ++index) {
        first[reversed * stride] = values[index] * 0.125;
        int bit = points / 2;
        for (; reversed & bit; bit /= 2)
            reversed ^= bit;
        reversed |= bit;
    }
}

void ReferenceBands::advance(int step, int band)
{
    std::vector<std::complex<double>> &values = bands_[band];
    for (int point = 0; point < band_points; ++point) {
        const std::complex<float> factor = phase(step, band, point);
        const std::complex<double> value = values[point];
        values[point] = {value.real() * factor.real() - value.imag() * factor.imag(),
                         value.real() * factor.imag() + value.imag() * factor.real()};
    }
    for (int row = 0; row < points; ++row)
        transform_line(&values[row * points], 1);
    for (int column = 0; column < points; ++column)
        transform_line(&values[column], points);
}
