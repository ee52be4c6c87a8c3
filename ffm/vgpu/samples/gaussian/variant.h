/* The seam between `gaussian` and its corrected twin `gaussian_fixed`: the same sources, compiled with
 * GAUSSIAN_FIXED=1. The twin leaves out the device synchronization after each kernel; the download of the
 * result waits for all of them. */
#pragma once

#ifndef GAUSSIAN_FIXED
#define GAUSSIAN_FIXED 0
#endif

constexpr bool original = GAUSSIAN_FIXED == 0;
