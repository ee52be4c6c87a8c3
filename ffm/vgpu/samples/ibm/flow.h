/* The flow around a moving body on a square grid, and the same on the CPU.
 *
 * A step of time: the body's markers pull the flow in their cells along, a viscous solve smooths it, and the
 * gradient of a potential is added. The viscous system is solved in single precision, the potential's in
 * double.
 */
#pragma once

#include <vector>

constexpr int width = 48;
constexpr int cells = width * width;
constexpr int markers = 192;

constexpr double time_step = 0.1;
constexpr double body_velocity = 0.8;
constexpr double marker_strength = 1;
constexpr double viscosity = 0.6;
constexpr double compressibility = 0.15;
constexpr double potential_weight = 0.1;

/* The entries of a sparse matrix, row after row. */
struct Entries {
    std::vector<int> rows;
    std::vector<int> columns;
    std::vector<double> values;
};

/* diagonal * identity + weight * the negative five-point Laplacian, with zero around the grid. */
Entries make_laplacian(double diagonal, double weight);

/* The cells of all markers in a step of time, in ascending order. */
std::vector<int> marker_cells(int step);

/* x + 1 minus x - 1 of a cell's neighbours, zero around the grid. */
template <typename Value>
inline Value
#ifdef __CUDACC__
    __host__ __device__
#endif
    difference(const Value *field, int cell)
{
    const int x = cell % width;
    return (x + 1 < width ? field[cell + 1] : Value(0)) - (x > 0 ? field[cell - 1] : Value(0));
}

/* The steps of time in double precision on the CPU. */
class ReferenceFlow
{
  public:
    explicit ReferenceFlow(int steps);
    /* Does one iteration of a solver: this is the CPU's own work between its CUDA calls. */
    void advance();
    /* Does all that remains. */
    void finish();
    const std::vector<double> &velocity() const
    {
        return velocity_;
    }

  private:
    enum class Phase { viscous, potential };
    void begin_viscous();
    void begin_potential();
    void begin_solve(const std::vector<double> &right_side, std::vector<double> &solution);
    void apply(const std::vector<double> &x, std::vector<double> &y) const;

    int steps_;
    int step_ = 0;
    Phase phase_ = Phase::viscous;
    std::vector<double> velocity_, potential_, residual_, direction_, product_;
    double squared_ = 0;
};
