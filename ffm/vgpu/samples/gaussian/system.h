/* A dense system of linear equations, and its solution on the CPU. */
#pragma once

#include <cstddef>
#include <vector>

/* matrix * solution = right_side; the matrix row after row. */
struct LinearSystem {
    int unknowns;
    std::vector<float> matrix;     /* unknowns x unknowns */
    std::vector<float> right_side; /* unknowns */
};

/* A system that needs no pivoting: its diagonal outweighs each row. */
LinearSystem make_system(int unknowns);

/* Solves triangular equations from the last row to the first. */
std::vector<double> substitute_back(const std::vector<double> &matrix, const std::vector<double> &right_side);

/* Gaussian elimination in extended precision, one column at a time: the CPU's own work between its CUDA calls.
 */
class ReferenceElimination
{
  public:
    explicit ReferenceElimination(const LinearSystem &system);
    /* Eliminates the unknown `column` from all rows below. */
    void eliminate_column(int column);
    /* After all columns but the last are eliminated. */
    std::vector<double> solution() const;

  private:
    int unknowns_;
    std::vector<long double> matrix_;
    std::vector<long double> right_side_;
};
