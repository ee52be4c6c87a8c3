/* The grids of a multigrid method for the heat equation on a square: (shift - weight * Laplacian) x = right side. */
#pragma once

#include <vector>

#ifdef __CUDACC__
#define ON_BOTH __host__ __device__
#else
#define ON_BOTH
#endif

constexpr int level_count = 3;
constexpr int fine_width = 63; /* interior points of a line; around them the solution is zero */
constexpr double shift = 0.5;

ON_BOTH constexpr int width_of(int level)
{
    return ((fine_width + 1) >> level) - 1;
}

ON_BOTH constexpr int points_of(int level)
{
    return width_of(level) * width_of(level);
}

/* The Laplacian's weight: a coarser grid's points are twice as far apart. */
ON_BOTH constexpr double weight_of(int level)
{
    return 1.0 / (1 << 2 * level);
}

/* A value of a grid, zero outside. */
template <typename Number> ON_BOTH inline Number at(const Number *grid, int width, int column, int row)
{
    return column < 0 || column >= width || row < 0 || row >= width ? Number(0) : grid[row * width + column];
}

/* The sum of a point's four neighbours. */
template <typename Number> ON_BOTH inline Number neighbours(const Number *grid, int width, int column, int row)
{
    return at(grid, width, column - 1, row) + at(grid, width, column + 1, row) + at(grid, width, column, row - 1) +
           at(grid, width, column, row + 1);
}

/* The heat that flows into a point in a step of time. It differs between the ranks. */
ON_BOTH inline float heating(int rank, int step, int column, int row)
{
    const int hot = (step * 7 + rank * 13) % fine_width;
    return (column - hot) * (column - hot) + (row - hot / 2) * (row - hot / 2) < 40 ? 1.0f : 0.0f;
}

/* Solves the coarsest grid's equations by Gauss-Seidel sweeps, from what `x` holds. */
void solve_coarsest(const float *right_side, float *x);

/* The same equations by conjugate gradients in double precision, on the finest grid alone. */
class ReferenceHeat
{
  public:
    explicit ReferenceHeat(int rank);
    /* Starts a step of time. */
    void begin(int step);
    /* Some iterations of the step: the CPU's own work between its CUDA calls. */
    void advance(int iterations);
    /* The rest of the step; afterwards the largest difference to `x`. */
    double finish(const float *x);

  private:
    int rank_;
    std::vector<double> x_, residual_, direction_, product_;
    double squared_ = 0;
};
