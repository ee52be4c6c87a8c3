/* The same factorisation on the CPU, in double precision and by another method, to check the GPU's result.
 *
 * Each row is a regularised least-squares problem; the reference solves it by Householder QR, where the GPU
 * solves the normal equations by conjugate gradients. The work is done in pieces, between the program's CUDA
 * calls: this is the CPU work that waiting for the GPU delays.
 */
#pragma once

#include <vector>

#include "training_set.h"

class ReferenceSolver
{
  public:
    /* `training` must outlive the solver; `theta` holds the initial columns x factor_count values. */
    ReferenceSolver(const TrainingSet &training, const float *theta);

    /* Starts an iteration: first all rows of X are to be solved, then all rows of Theta. */
    void begin_iteration(double user_penalty, double item_penalty);
    /* Solves further rows of X and Theta: `share`, 0 to 1, of the iteration's work. */
    void advance(double share);
    /* Solves what remains of the iteration. */
    void finish_iteration();

    double predict(int row, int column) const;

  private:
    void solve_next();

    const TrainingSet &training_;
    std::vector<double> x_;
    std::vector<double> theta_;
    std::vector<double> design_; /* column after column, then the right-hand side */
    double user_penalty_ = 0;
    double item_penalty_ = 0;
    int solved_ = 0;       /* rows of X and Theta, of this iteration */
    double work_done_ = 0; /* ratings passed, of this iteration */
    double work_due_ = 0;
};
