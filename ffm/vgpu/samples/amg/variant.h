/* The seam between `amg` and its corrected twin `amg_fixed`: the same sources, compiled with AMG_FIXED=1. The twin
 * clears the coarse grid, which lies in managed memory and is used by the CPU, with memset instead of cudaMemset. */
#pragma once

#ifndef AMG_FIXED
#define AMG_FIXED 0
#endif

constexpr bool original = AMG_FIXED == 0;
