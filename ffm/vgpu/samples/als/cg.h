/* Conjugate gradients for many small symmetric systems at once. */
#pragma once

/* Solves `systems` systems A x = b of factor_count unknowns each, all in device memory; `x` holds the initial
 * guess and receives the solution. */
void updateXWithCG(const float *matrices, float *x, const float *right_hand_sides, int systems);
