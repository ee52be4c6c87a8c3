/* als [ITERATIONS] [SEED]: factorises a synthetic rating matrix and checks the result.
 *
 * Prints the errors of each iteration and a checksum of the factors. Exit status: 0 when the factors explain
 * the ratings down to the planted noise and agree with a solution computed on the CPU, 1 when they do not, 2
 * for wrong arguments or a failed CUDA call.
 */
#include <algorithm>
#include <cerrno>
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "als.h"
#include "check.h"
#include "reference.h"

namespace
{

constexpr int rows = 1100;
constexpr int columns = 700;

/* Root mean square difference to the reference's predictions: single precision leaves some 1e-5. */
constexpr double tolerated_difference = 1e-3;

template <typename Element> Element *pinned(int count)
{
    void *memory;
    check(cudaMallocHost(&memory, static_cast<std::size_t>(count) * sizeof(Element)));
    return static_cast<Element *>(memory);
}

TrainingSet pinned_training_set(const RatingMatrix &matrix)
{
    const Coordinates &ratings = matrix.training;
    const int count = ratings.count();
    TrainingSet training{matrix.rows,
                         matrix.columns,
                         count,
                         pinned<int>(matrix.rows + 1),
                         pinned<int>(count),
                         pinned<float>(count),
                         pinned<int>(matrix.columns + 1),
                         pinned<int>(count),
                         pinned<float>(count),
                         pinned<int>(count)};
    compress_rows(ratings, matrix.rows, training.csr_offsets, training.csr_columns, training.csr_values);
    compress_columns(ratings, matrix.columns, training.csc_offsets, training.csc_rows, training.csc_values);
    std::copy(ratings.rows.begin(), ratings.rows.end(), training.coo_rows);
    return training;
}

/* Root mean square difference between the GPU's and the reference's prediction of the test ratings. */
double difference(const Coordinates &test, const float *x, const float *theta, const ReferenceSolver &reference)
{
    double sum = 0;
    for (int r = 0; r < test.count(); ++r) {
        double prediction = -reference.predict(test.rows[r], test.columns[r]);
        for (int i = 0; i < factor_count; ++i)
            prediction +=
                static_cast<double>(x[test.rows[r] * factor_count + i]) * theta[test.columns[r] * factor_count + i];
        sum += prediction * prediction;
    }
    return std::sqrt(sum / test.count());
}

/* FNV-1a over the bytes of `count` numbers. */
std::uint64_t checksum(const float *numbers, int count, std::uint64_t hash)
{
    for (int i = 0; i < count; ++i) {
        std::uint32_t bits;
        std::memcpy(&bits, &numbers[i], sizeof bits);
        for (int byte = 0; byte < 4; ++byte)
            hash = (hash ^ (bits >> 8 * byte & 0xff)) * 0x100000001b3u;
    }
    return hash;
}

/* Reads argument `index`, a whole number of at least `minimum`; ends the program where it is none. */
int argument(int count, char **arguments, int index, int minimum, int otherwise)
{
    if (index >= count)
        return otherwise;
    char *end;
    errno = 0;
    const long value = std::strtol(arguments[index], &end, 10);
    if (end != arguments[index] && *end == '\0' && errno == 0 && value >= minimum && value <= INT_MAX)
        return static_cast<int>(value);
    std::fprintf(stderr, "als: '%s' is no whole number of at least %d\nusage: als [ITERATIONS] [SEED]\n",
                 arguments[index], minimum);
    std::exit(2);
}

bool judge(const Errors &errors, double deviation, int iterations)
{
    bool good = deviation <= tolerated_difference;
    if (!good)
        std::fprintf(stderr, "als: the factors differ from the reference by %g\n", deviation);
    /* The first iterations are far from the solution: for them the comparison is the check. */
    if (iterations >= 20 && !(errors.training < noise_deviation && errors.test < 2 * noise_deviation)) {
        std::fprintf(stderr, "als: did not converge to the noise of %g\n", noise_deviation);
        good = false;
    }
    if (iterations > 1 && !(errors.training < errors.first_training)) {
        std::fprintf(stderr, "als: the training error did not fall\n");
        good = false;
    }
    return good;
}

} // namespace

int main(int count, char **arguments)
{
    const int iterations = argument(count, arguments, 1, 1, 100);
    const int seed = argument(count, arguments, 2, 0, 1);
    const RatingMatrix matrix = make_ratings(rows, columns, static_cast<std::uint64_t>(seed));
    TrainingSet training = pinned_training_set(matrix);
    float *theta = pinned<float>(columns * factor_count);
    float *x = pinned<float>(rows * factor_count);
    Weights weights{pinned<float>(rows), pinned<float>(columns)};
    RandomNumbers random(static_cast<std::uint64_t>(seed) + 1);
    const auto initial_factor = [&random] { return static_cast<float>(random.next() - 0.5); };
    std::generate(theta, theta + columns * factor_count, initial_factor);
    std::generate(x, x + rows * factor_count, initial_factor);

    ReferenceSolver reference(training, theta);
    const Errors errors = doALS(training, matrix.test, x, theta, weights, iterations, reference);
    const double deviation = difference(matrix.test, x, theta, reference);
    const std::uint64_t hash =
        checksum(x, rows * factor_count, checksum(theta, columns * factor_count, 0xcbf29ce484222325u));
    std::printf("training RMSE %.6f, test RMSE %.6f, checksum %016llx\n", errors.training, errors.test,
                static_cast<unsigned long long>(hash));

    // once: teardown
    check(cudaFreeHost(training.csr_offsets));
    // once: teardown
    check(cudaFreeHost(training.csr_columns));
    // once: teardown
    check(cudaFreeHost(training.csr_values));
    // once: teardown
    check(cudaFreeHost(training.csc_values));
    // once: teardown
    check(cudaFreeHost(training.csc_rows));
    // once: teardown
    check(cudaFreeHost(training.csc_offsets));
    // once: teardown
    check(cudaFreeHost(training.coo_rows));
    // once: teardown
    check(cudaFreeHost(x));
    // once: teardown
    check(cudaFreeHost(theta));
    // once: teardown
    check(cudaFreeHost(weights.users));
    // once: teardown
    check(cudaFreeHost(weights.items));
    // once: teardown
    check(cudaDeviceReset());
    return judge(errors, deviation, iterations) ? 0 : 1;
}
