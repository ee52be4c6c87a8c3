#include "ratings.h"

#include <cmath>
#include <cstddef>

namespace
{

constexpr double training_density = 0.06;
constexpr double test_density = 0.045;

std::vector<double> planted_factors(int count, RandomNumbers &random)
{
    std::vector<double> factors(static_cast<std::size_t>(count) * factor_count);
    for (double &factor : factors)
        factor = 2 * random.next() - 1;
    return factors;
}

/* Mean 0, variance 1: the sum of twelve uniform numbers needs no function that libraries round differently.
 */
double normal(RandomNumbers &random)
{
    double sum = -6;
    for (int i = 0; i < 12; ++i)
        sum += random.next();
    return sum;
}

void append(Coordinates &ratings, int row, int column, double value)
{
    ratings.rows.push_back(row);
    ratings.columns.push_back(column);
    ratings.values.push_back(static_cast<float>(value));
}

} // namespace

/* SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014). */
double RandomNumbers::next()
{
    state_ += 0x9e3779b97f4a7c15u;
    std::uint64_t bits = state_;
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
    bits ^= bits >> 31;
    return static_cast<double>(bits >> 11) * 0x1p-53;
}

RatingMatrix make_ratings(int rows, int columns, std::uint64_t seed)
{
    RandomNumbers random(seed);
    RatingMatrix matrix{rows, columns, {}, {}};
    const std::vector<double> users = planted_factors(rows, random);
    const std::vector<double> items = planted_factors(columns, random);
    for (int row = 0; row < rows; ++row)
        for (int column = 0; column < columns; ++column) {
            const double chance = random.next();
            if (chance >= training_density + test_density)
                continue;
            double rating = noise_deviation * normal(random);
            for (int i = 0; i < factor_count; ++i)
                rating += users[row * factor_count + i] * items[column * factor_count + i];
            append(chance < training_density ? matrix.training : matrix.test, row, column, rating);
        }
    return matrix;
}

void compress_rows(const Coordinates &ratings, int rows, int *offsets, int *columns, float *values)
{
    int next = 0;
    for (int row = 0; row < rows; ++row) {
        offsets[row] = next;
        for (; next < ratings.count() && ratings.rows[next] == row; ++next) {
            columns[next] = ratings.columns[next];
            values[next] = ratings.values[next];
        }
    }
    offsets[rows] = next;
}

void compress_columns(const Coordinates &ratings, int columns, int *offsets, int *rows, float *values)
{
    std::vector<int> next(static_cast<std::size_t>(columns) + 1, 0);
    for (int column : ratings.columns)
        ++next[column + 1];
    for (int column = 0; column < columns; ++column)
        next[column + 1] += next[column];
    for (int column = 0; column <= columns; ++column)
        offsets[column] = next[column];
    for (int i = 0; i < ratings.count(); ++i) {
        const int place = next[ratings.columns[i]]++;
        rows[place] = ratings.rows[i];
        values[place] = ratings.values[i];
    }
}
