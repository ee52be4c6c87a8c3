#include "flow.h"

#include <algorithm>
#include <cmath>

namespace
{

/* Squared residual at which the reference's solvers stop: far below what single precision reaches. */
constexpr double reference_tolerance = 1e-16;

/* diagonal * x - weight * the Laplacian of x, in one cell. */
double stencil(const std::vector<double> &x, int cell, double diagonal, double weight)
{
    const int column = cell % width, row = cell / width;
    double sum = (diagonal + 4 * weight) * x[cell];
    if (column > 0)
        sum -= weight * x[cell - 1];
    if (column + 1 < width)
        sum -= weight * x[cell + 1];
    if (row > 0)
        sum -= weight * x[cell - width];
    if (row + 1 < width)
        sum -= weight * x[cell + width];
    return sum;
}

double dot(const std::vector<double> &x, const std::vector<double> &y)
{
    double sum = 0;
    for (int cell = 0; cell < cells; ++cell)
        sum += x[cell] * y[cell];
    return sum;
}

} // namespace

Entries make_laplacian(double diagonal, double weight)
{
    Entries entries;
    for (int cell = 0; cell < cells; ++cell) {
        const int column = cell % width, row = cell / width;
        const auto add = [&](bool inside, int other, double value) {
            if (!inside)
                return;
            entries.rows.push_back(cell);
            entries.columns.push_back(other);
            entries.values.push_back(value);
        };
        add(row > 0, cell - width, -weight);
        add(column > 0, cell - 1, -weight);
        add(true, cell, diagonal + 4 * weight);
        add(column + 1 < width, cell + 1, -weight);
        add(row + 1 < width, cell + width, -weight);
    }
    return entries;
}

std::vector<int> marker_cells(int step)
{
    std::vector<int> result(markers);
    for (int marker = 0; marker < markers; ++marker) {
        const double angle = 2 * 3.14159265358979 * marker / markers, turned = angle + 0.05 * step;
        const double x = 0.5 + 0.3 * std::cos(turned), y = 0.5 + 0.2 * std::sin(turned) * std::cos(0.03 * step);
        result[marker] = static_cast<int>(y * width) * width + static_cast<int>(x * width);
    }
    std::sort(result.begin(), result.end());
    return result;
}

ReferenceFlow::ReferenceFlow(int steps)
    : steps_(steps), velocity_(cells), potential_(cells), residual_(cells), direction_(cells), product_(cells)
{
    begin_viscous();
}

void ReferenceFlow::apply(const std::vector<double> &x, std::vector<double> &y) const
{
    const bool viscous = phase_ == Phase::viscous;
    for (int cell = 0; cell < cells; ++cell)
        y[cell] = viscous ? stencil(x, cell, 1, viscosity) : stencil(x, cell, compressibility, 1);
}

void ReferenceFlow::begin_solve(const std::vector<double> &right_side, std::vector<double> &solution)
{
    apply(solution, residual_);
    for (int cell = 0; cell < cells; ++cell)
        direction_[cell] = residual_[cell] = right_side[cell] - residual_[cell];
    squared_ = dot(residual_, residual_);
}

void ReferenceFlow::begin_viscous()
{
    if (step_ == steps_)
        return;
    phase_ = Phase::viscous;
    std::vector<double> counts(cells), right_side(cells);
    for (int cell : marker_cells(step_))
        ++counts[cell];
    for (int cell = 0; cell < cells; ++cell)
        right_side[cell] =
            velocity_[cell] + time_step * marker_strength * counts[cell] * (body_velocity - velocity_[cell]);
    begin_solve(right_side, velocity_);
}

void ReferenceFlow::begin_potential()
{
    phase_ = Phase::potential;
    std::vector<double> right_side(cells);
    for (int cell = 0; cell < cells; ++cell)
        right_side[cell] = difference(velocity_.data(), cell);
    begin_solve(right_side, potential_);
}

void ReferenceFlow::advance()
{
    if (step_ == steps_)
        return;
    std::vector<double> &solution = phase_ == Phase::viscous ? velocity_ : potential_;
    if (squared_ > reference_tolerance) {
        apply(direction_, product_);
        const double length = squared_ / dot(direction_, product_);
        for (int cell = 0; cell < cells; ++cell) {
            solution[cell] += length * direction_[cell];
            residual_[cell] -= length * product_[cell];
        }
        const double remaining = dot(residual_, residual_);
        for (int cell = 0; cell < cells; ++cell)
            direction_[cell] = residual_[cell] + remaining / squared_ * direction_[cell];
        squared_ = remaining;
    } else if (phase_ == Phase::viscous) {
        begin_potential();
    } else {
        for (int cell = 0; cell < cells; ++cell)
            velocity_[cell] += potential_weight * difference(potential_.data(), cell);
        ++step_;
        begin_viscous();
    }
}

void ReferenceFlow::finish()
{
    while (step_ < steps_)
        advance();
}
