/* The seam between `flag` and its corrected twin `flag_fixed`: the same sources, compiled with FLAG_FIXED=1. The twin
 * reads the status where the program waits anyway, after the CPU's own work, and repeats the step there in the rare
 * case that it failed. */
#pragma once

#ifndef FLAG_FIXED
#define FLAG_FIXED 0
#endif

constexpr bool original = FLAG_FIXED == 0;
