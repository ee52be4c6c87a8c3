/* The seam between `fft` and its corrected twin `fft_fixed`: the same source, compiled with FFT_FIXED=1. The twin uses
 * the library's other build, which does not wait, with pinned arrays, and waits once for all transforms. */
#pragma once

#ifndef FFT_FIXED
#define FFT_FIXED 0
#endif

constexpr bool original = FFT_FIXED == 0;
