#include "system.h"

#include <cmath>

LinearSystem make_system(int unknowns)
{
    const std::size_t n = unknowns;
    LinearSystem system{unknowns, std::vector<float>(n * n), std::vector<float>(n)};
    for (std::size_t row = 0; row < n; ++row) {
        double sum = 0;
        for (std::size_t column = 0; column < n; ++column) {
            const double value = std::cos(0.37 * (row + 1) * (column + 2)) / (1 + std::fabs(double(row) - column));
            system.matrix[row * n + column] = static_cast<float>(value);
            sum += std::fabs(value);
        }
        system.matrix[row * n + row] = static_cast<float>(sum + 1);
        system.right_side[row] = static_cast<float>(1 + std::sin(0.11 * row));
    }
    return system;
}

std::vector<double> substitute_back(const std::vector<double> &matrix, const std::vector<double> &right_side)
{
    const std::size_t n = right_side.size();
    std::vector<double> solution(n);
    for (std::size_t row = n; row-- > 0;) {
        double rest = right_side[row];
        for (std::size_t column = row + 1; column < n; ++column)
            rest -= matrix[row * n + column] * solution[column];
        solution[row] = rest / matrix[row * n + row];
    }
    return solution;
}

ReferenceElimination::ReferenceElimination(const LinearSystem &system)
    : unknowns_(system.unknowns), matrix_(system.matrix.begin(), system.matrix.end()),
      right_side_(system.right_side.begin(), system.right_side.end())
{
}

void ReferenceElimination::eliminate_column(int column)
{
    const std::size_t n = unknowns_, pivot = column;
    for (std::size_t row = pivot + 1; row < n; ++row) {
        const long double factor = matrix_[row * n + pivot] / matrix_[pivot * n + pivot];
        for (std::size_t other = pivot; other < n; ++other)
            matrix_[row * n + other] -= factor * matrix_[pivot * n + other];
        right_side_[row] -= factor * right_side_[pivot];
    }
}

std::vector<double> ReferenceElimination::solution() const
{
    return substitute_back({matrix_.begin(), matrix_.end()}, {right_side_.begin(), right_side_.end()});
}
