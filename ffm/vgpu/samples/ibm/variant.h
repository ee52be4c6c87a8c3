/* The seam between `ibm` and its corrected twin `ibm_fixed`: the same sources, compiled with IBM_FIXED=1. The
 * twin keeps the temporaries of the sparse library for the next call, where the original frees each at once;
 * see `temporary_memory.h`. */
#pragma once

#ifndef IBM_FIXED
#define IBM_FIXED 0
#endif

constexpr bool original = IBM_FIXED == 0;
