/* Alternating least squares on the GPU: R ~ X * Theta^T. */
#pragma once

#include "ratings.h"
#include "training_set.h"

class ReferenceSolver;

/* Root mean square errors, in rating units, of the first and of the last iteration. */
struct Errors {
    double first_training;
    double training;
    double test;
};

/* Pinned host memory for the weights of the rows of X and of Theta. */
struct Weights {
    float *users; /* rows */
    float *items; /* columns */
};

/* The weight of the squared factors for each rating of their row: constant for the items, decreasing from one iteration
 * to the next for the users. */
constexpr double item_penalty = 5e-3;
double user_penalty(int iteration);

/* Runs `iterations` (at least 1) of alternating least squares.
 *
 * `x` (rows x factor_count) and `theta` (columns x factor_count), in pinned host memory, hold the initial
 * factors and receive the final ones. `reference` works through the same iterations on the CPU in between.
 * Ends the program when a CUDA call fails. */
Errors doALS(const TrainingSet &training, const Coordinates &test, float *x, float *theta, const Weights &weights,
             int iterations, ReferenceSolver &reference);
