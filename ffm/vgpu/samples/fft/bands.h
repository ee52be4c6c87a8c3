/* The bands of a crystal's electrons, and what the program does with them on the CPU. */
#pragma once

#include <complex>
#include <vector>

#include "vfft.h"

constexpr int band_count = 16;
constexpr int band_points = VFFT_POINTS * VFFT_POINTS;

/* The initial value of a point of a band; each band has unit energy. */
std::complex<double> initial_point(int band, int point);

/* What a step multiplies a point with, of magnitude 1: the potential's phase for this band. */
std::complex<float> phase(int step, int band, int point);

/* The same transforms and phases in double precision on the CPU, one band at a time. */
class ReferenceBands
{
  public:
    ReferenceBands();
    /* One step of one band. */
    void advance(int step, int band);
    std::complex<double> point(int band, int point) const
    {
        return bands_[band][point];
    }

  private:
    void transform_line(std::complex<double> *first, int stride) const;

    std::vector<std::complex<double>> roots_;
    std::vector<std::vector<std::complex<double>>> bands_;
};
