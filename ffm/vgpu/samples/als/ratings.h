/* A synthetic rating matrix: a planted product of two factor matrices plus noise, known in few places. */
#pragma once

#include <cstdint>
#include <vector>

/* Factors of each user and each item: the `f` of R ~ X * Theta^T. */
constexpr int factor_count = 8;

/* Standard deviation of the noise on each rating, in rating units. */
constexpr double noise_deviation = 0.1;

/* Ratings in coordinate form, ordered by row, then column. Three arrays of equal length. */
struct Coordinates {
    std::vector<int> rows;
    std::vector<int> columns;
    std::vector<float> values;
    int count() const
    {
        return static_cast<int>(values.size());
    }
};

struct RatingMatrix {
    int rows;
    int columns;
    Coordinates training;
    Coordinates test;
};

/* The same numbers in 0 <= x < 1 for the same seed, whatever the compiler and the standard library. */
class RandomNumbers
{
  public:
    explicit RandomNumbers(std::uint64_t seed) : state_(seed) {}
    double next();

  private:
    std::uint64_t state_;
};

/* A matrix of `rows` x `columns` of which about 6 % of the entries are for training and 4.5 % for testing. */
RatingMatrix make_ratings(int rows, int columns, std::uint64_t seed);

/* Compressed sparse rows of `ratings`, into arrays of the caller: `offsets[rows + 1]`, the rest of
 * `ratings.count()`. */
void compress_rows(const Coordinates &ratings, int rows, int *offsets, int *columns, float *values);

/* Compressed sparse columns of `ratings`: `offsets[columns + 1]`, the rest of `ratings.count()`. */
void compress_columns(const Coordinates &ratings, int columns, int *offsets, int *rows, float *values);
