#include "grid.h"

#include <algorithm>
#include <cmath>

namespace
{

constexpr int points = points_of(0);
constexpr double reference_tolerance = 1e-16; /* of the squared residual */

double dot(const std::vector<double> &x, const std::vector<double> &y)
{
    double sum = 0;
    for (int point = 0; point < points; ++point)
        sum += x[point] * y[point];
    return sum;
}

/* y = (shift - Laplacian) x on the finest grid */
void apply_operator(const std::vector<double> &x, std::vector<double> &y)
{
    for (int row = 0; row < fine_width; ++row) {
        for (int column = 0; column < fine_width; ++column) {
            const int point = row * fine_width + column;
            y[point] = (shift + 4) * x[point] - neighbours(x.data(), fine_width, column, row);
        }
    }
}

} // namespace

void solve_coarsest(const float *right_side, float *x)
{
    constexpr int level = level_count - 1, width = width_of(level), sweeps = 25;
    constexpr float weight = static_cast<float>(weight_of(level)), diagonal = static_cast<float>(shift) + 4 * weight;
    for (int sweep = 0; sweep < sweeps; ++sweep)
        for (int row = 0; row < width; ++row)
            for (int column = 0; column < width; ++column)
                x[row * width + column] =
                    (right_side[row * width + column] + weight * neighbours(x, width, column, row)) / diagonal;
}

ReferenceHeat::ReferenceHeat(int rank)
    : rank_(rank), x_(points), residual_(points), direction_(points), product_(points)
{
}

void ReferenceHeat::begin(int step)
{
    apply_operator(x_, residual_);
    for (int point = 0; point < points; ++point) {
        const double heat = heating(rank_, step, point % fine_width, point / fine_width);
        direction_[point] = residual_[point] = shift * x_[point] + heat - residual_[point];
    }
    squared_ = dot(residual_, residual_);
}

void ReferenceHeat::advance(int iterations)
{
    for (int iteration = 0; iteration < iterations && squared_ > reference_tolerance; ++iteration) {
        apply_operator(direction_, product_);
        const double length = squared_ / dot(direction_, product_);
        for (int point = 0; point < points; ++point) {
            x_[point] += length * direction_[point];
            residual_[point] -= length * product_[point];
        }
        const double remaining = dot(residual_, residual_);
        for (int point = 0; point < points; ++point)
            direction_[point] = residual_[point] + remaining / squared_ * direction_[point];
        squared_ = remaining;
    }
}

double ReferenceHeat::finish(const float *x)
{
    while (squared_ > reference_tolerance)
        advance(1);
    double largest = 0;
    for (int point = 0; point < points; ++point)
        largest = std::max(largest, std::fabs(x[point] - x_[point]));
    return largest;
}
