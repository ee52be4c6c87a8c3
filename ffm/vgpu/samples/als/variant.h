/* The seam between `als` and its corrected twin `als_fixed`: the same sources, compiled with ALS_FIXED=1.
 *
 * The twin corrects three things and nothing else:
 *
 * - temporary device buffers are allocated in the first iteration and freed in the last one, where the
 *   original does both in every iteration (`cudaFree` waits for the GPU and costs time of its own);
 * - arrays that never change are uploaded in the first iteration only, and only once each;
 * - device synchronizations that no result depends on are left out.
 *
 * What the computation needs stays: the upload of each iteration's weights, and the waits of the library
 * that fetch the sums of squared errors. The same kernels run on the same data in the same order.
 */
#pragma once

#ifndef ALS_FIXED
#define ALS_FIXED 0
#endif

constexpr bool original = ALS_FIXED == 0;
