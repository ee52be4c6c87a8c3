#include "pairs.h"

#include <string.h>

/* One pair alone counts only if its loss is clear: this much of the time and more than its standard error, or
 * CLEAR_ERRORS of these. */
static const double clear_loss = 0.1;
enum { CLEAR_ERRORS = 3 };

/* From so many pairs on, how they differ tells the error of their median. */
enum { ENOUGH = 4 };

/* It is open which way is faster if they differ by less than this many standard errors, but not after this many pairs:
 * then they differ little. As long as corrections seem to lose, it stays open, because comparing then costs nothing. */
enum { OPEN_ERRORS = 2, OPEN_PAIRS = 8 };

/* All but the last pairs are forgotten as soon as so many in a row contradict the others: programs have phases. */
enum { CONTRADICT = 3 };

/* The standard error of a centre, times the square root of the sample's size, by the median deviation from it. Of
 * normally distributed values, 1.4826 times that deviation is the standard deviation (1 / the 0.75 quantile), and the
 * centre varies by 1.0233 times what the mean does (the square root of pi / 3). */
static const double error_of_centre = 1.4826 * 1.0233;

enum { MEANS = FFM_PAIRS_SAMPLE * (FFM_PAIRS_SAMPLE + 1) / 2 };

/* Shell's sort: the C library's may allocate memory, which the program's allocator need not bear here. */
static void sort(float *values, uint32_t count)
{
    for (uint32_t gap = count / 2; gap > 0; gap /= 2)
        for (uint32_t i = gap; i < count; i++) {
            const float value = values[i];
            uint32_t place = i;
            for (; place >= gap && values[place - gap] > value; place -= gap)
                values[place] = values[place - gap];
            values[place] = value;
        }
}

static float median(float *values, uint32_t count)
{
    sort(values, count);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

/* The median of the means of all pairs of values (Hodges and Lehmann 1963, doi:10.1214/aoms/1177704172). Up to 29 % of
 * the values may be anything, and yet it varies hardly more than the mean does where nothing is wrong with them. Of
 * few values, one in each half of these means would be too many: their median. */
static float centre(const float *values, uint32_t count)
{
    float means[MEANS];
    uint32_t found = 0;
    for (uint32_t one = 0; one < count; one++)
        for (uint32_t other = one; other < (count < ENOUGH ? one + 1 : count); other++)
            means[found++] = (values[one] + values[other]) / 2;
    return median(means, found);
}

/* The square of the sample's standard error, from how the pairs differ from each other. With few pairs that is hardly
 * known; then from how calls within them differ, if that gives a larger error. With more pairs the calls do not count:
 * they can differ in the same way in each pair, as in bursts, or if what a block leaves behind makes its last call
 * long. */
static double error_squared(const ffm_pairs *pairs, const ffm_remedy_trial *trial)
{
    float errors[FFM_PAIRS_SAMPLE];
    memcpy(errors, pairs->errors, sizeof errors);
    const double among = error_of_centre * error_of_centre * trial->deviation * trial->deviation;
    const double within = trial->pairs < ENOUGH ? median(errors, trial->pairs) : 0;
    return (among > within ? among : within) / trial->pairs;
}

/* Whether the difference is at most so many standard errors. */
static bool is_within(const ffm_pairs *pairs, const ffm_remedy_trial *trial, double errors)
{
    return trial->slower * trial->slower <= errors * errors * error_squared(pairs, trial);
}

/* Whether corrected calls lose no time beyond what the sample leaves open. */
static bool pays(const ffm_pairs *pairs, const ffm_remedy_trial *trial)
{
    if (trial->slower <= 0 || is_within(pairs, trial, 1))
        return true;
    return trial->pairs == 1 && trial->slower < clear_loss && is_within(pairs, trial, CLEAR_ERRORS);
}

bool ffm_pairs_leave_open(const ffm_pairs *pairs, const ffm_remedy_trial *trial)
{
    const bool seems_to_lose = trial->corrects && trial->slower > 0;
    if (trial->pairs == 0 || (trial->pairs >= OPEN_PAIRS && !seems_to_lose) || pairs->rare_loss > 0)
        return false;
    return is_within(pairs, trial, trial->pairs == 1 ? CLEAR_ERRORS : OPEN_ERRORS);
}

uint32_t ffm_pairs_contradictions(const ffm_pairs *pairs, const ffm_remedy_trial *trial)
{
    uint32_t found = 0;
    while (found <= CONTRADICT && found < trial->pairs) {
        const float difference = pairs->differences[trial->pairs - 1 - found];
        if (trial->corrects ? difference <= 0 : difference >= 0)
            break;
        found++;
    }
    return found;
}

/* Forget all pairs but the last ones. */
static void keep_last(ffm_pairs *pairs, ffm_remedy_trial *trial, uint32_t kept)
{
    memmove(pairs->differences, pairs->differences + trial->pairs - kept, kept * sizeof *pairs->differences);
    memmove(pairs->errors, pairs->errors + trial->pairs - kept, kept * sizeof *pairs->errors);
    trial->pairs = kept;
}

void ffm_pairs_add(ffm_pairs *pairs, ffm_remedy_trial *trial, double original_ns, double corrected_ns,
                   double error_squared_ns)
{
    if (trial->pairs == FFM_PAIRS_SAMPLE)
        keep_last(pairs, trial, FFM_PAIRS_SAMPLE / 2);
    const double larger_ns = corrected_ns > original_ns ? corrected_ns : original_ns;
    pairs->differences[trial->pairs] = (float)((corrected_ns - original_ns) / larger_ns);
    pairs->errors[trial->pairs] = (float)(error_squared_ns / larger_ns / larger_ns);
    trial->pairs++;
    if (ffm_pairs_contradictions(pairs, trial) == CONTRADICT)
        keep_last(pairs, trial, CONTRADICT);
    const float *differences = pairs->differences, middle = centre(differences, trial->pairs);
    float values[FFM_PAIRS_SAMPLE];
    for (uint32_t i = 0; i < trial->pairs; i++)
        values[i] = differences[i] > middle ? differences[i] - middle : middle - differences[i];
    trial->slower = middle + pairs->rare_loss;
    trial->deviation = median(values, trial->pairs);
    trial->corrects = pairs->rare_loss == 0 && pays(pairs, trial);
}
