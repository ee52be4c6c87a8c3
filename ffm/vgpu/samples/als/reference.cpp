#include "reference.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "ratings.h"

namespace
{

constexpr int f = factor_count;

double dot(const double *left, const double *right, int count)
{
    double sum = 0;
    for (int i = 0; i < count; ++i)
        sum += left[i] * right[i];
    return sum;
}

void add_multiple(double *target, double factor, const double *source, int count)
{
    for (int i = 0; i < count; ++i)
        target[i] += factor * source[i];
}

/* Minimises |A z - b| by Householder QR. `design` holds the f columns of A, then b, each of `height` values,
 * and is overwritten; `solution` receives f values. */
void least_squares(double *design, int height, double *solution)
{
    for (int k = 0; k < f; ++k) {
        double *pivot = design + static_cast<std::size_t>(k) * height + k;
        const int length = height - k;
        const double norm = std::sqrt(dot(pivot, pivot, length));
        const double diagonal = pivot[0] > 0 ? -norm : norm;
        pivot[0] -= diagonal;
        const double scale = dot(pivot, pivot, length) / 2;
        for (int j = k + 1; j <= f && scale > 0; ++j) {
            double *column = design + static_cast<std::size_t>(j) * height + k;
            add_multiple(column, -dot(pivot, column, length) / scale, pivot, length);
        }
        solution[k] = diagonal;
    }
    const double *right = design + static_cast<std::size_t>(f) * height;
    for (int k = f - 1; k >= 0; --k) {
        double value = right[k];
        for (int j = k + 1; j < f; ++j)
            value -= design[static_cast<std::size_t>(j) * height + k] * solution[j];
        solution[k] = value / solution[k];
    }
}

} // namespace

ReferenceSolver::ReferenceSolver(const TrainingSet &training, const float *theta)
    : training_(training), x_(static_cast<std::size_t>(training.rows) * f, 0.0),
      theta_(theta, theta + static_cast<std::size_t>(training.columns) * f)
{
}

void ReferenceSolver::begin_iteration(double user_penalty, double item_penalty)
{
    user_penalty_ = user_penalty;
    item_penalty_ = item_penalty;
    solved_ = 0;
    work_done_ = 0;
    work_due_ = 0;
}

void ReferenceSolver::advance(double share)
{
    work_due_ += share * 2 * training_.count;
    while (solved_ < training_.rows + training_.columns && work_done_ < work_due_)
        solve_next();
}

void ReferenceSolver::finish_iteration()
{
    while (solved_ < training_.rows + training_.columns)
        solve_next();
}

double ReferenceSolver::predict(int row, int column) const
{
    return dot(&x_[static_cast<std::size_t>(row) * f], &theta_[static_cast<std::size_t>(column) * f], f);
}

void ReferenceSolver::solve_next()
{
    const bool is_user = solved_ < training_.rows;
    const int index = is_user ? solved_ : solved_ - training_.rows;
    const int *offsets = is_user ? training_.csr_offsets : training_.csc_offsets;
    const int *others = is_user ? training_.csr_columns : training_.csc_rows;
    const float *values = is_user ? training_.csr_values : training_.csc_values;
    const double *given = is_user ? theta_.data() : x_.data();
    double *target = (is_user ? x_.data() : theta_.data()) + static_cast<std::size_t>(index) * f;

    const int start = offsets[index];
    const int ratings = offsets[index + 1] - start;
    const int height = ratings + f;
    design_.assign(static_cast<std::size_t>(height) * (f + 1), 0.0);
    double *right = &design_[static_cast<std::size_t>(height) * f];
    for (int r = 0; r < ratings; ++r) {
        const double *factors = given + static_cast<std::size_t>(others[start + r]) * f;
        for (int k = 0; k < f; ++k)
            design_[static_cast<std::size_t>(k) * height + r] = factors[k];
        right[r] = values[start + r];
    }
    const double weight = std::sqrt((is_user ? user_penalty_ : item_penalty_) * std::max(ratings, 1));
    for (int k = 0; k < f; ++k)
        design_[static_cast<std::size_t>(k) * height + ratings + k] = weight;
    least_squares(design_.data(), height, target);
    ++solved_;
    work_done_ += ratings;
}
