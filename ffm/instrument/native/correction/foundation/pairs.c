#include "pairs.h"

#include <string.h>

/* One pair alone counts only if its loss is clear: this much of the time and more than its standard error, or
 * CLEAR_ERRORS of these. */
static const double clear_loss = 0.1;
enum { CLEAR_ERRORS = 3 };

/* From so many pairs on, how they differ tells the error of their median. */
enum { ENOUGH = 4 };

/* It is open which way is faster if they differ by less than so many standard errors; but not after so many pairs: then
 * they differ little. */
enum { OPEN_ERRORS = 2, OPEN_PAIRS = 8 };

/* All but the last pairs are forgotten as soon as so many in a row contradict the others: programs have phases. */
enum { CONTRADICT = 3 };

/* The standard error of a median, times the square root of the sample's size, by the median deviation from it. Of
 * normally distributed values, 1.4826 times that deviation is the standard deviation (1 / the 0.75 quantile), and the
 * median varies by 1.2533 times what the mean does (the square root of pi / 2). */
static const double error_of_median = 1.4826 * 1.2533;

static float median(float *values, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        const float value = values[i];
        uint32_t place = i;
        for (; place > 0 && values[place - 1] > value; place--)
            values[place] = values[place - 1];
        values[place] = value;
    }
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

/* The square of the sample's standard error, by how the pairs differ from each other. Of few pairs that is hardly
 * known: then by how calls within them do, if that says more. Not of others, because these can differ in the same way
 * in each pair: as in bursts, or if what a block leaves behind makes its last call long. */
static double error_squared(const ffm_pairs *pairs, const ffm_remedy_trial *trial)
{
    float errors[FFM_PAIRS_SAMPLE];
    memcpy(errors, pairs->errors, sizeof errors);
    const double among = error_of_median * error_of_median * trial->deviation * trial->deviation;
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
    if (trial->pairs == 0 || trial->pairs >= OPEN_PAIRS || pairs->rare_loss > 0)
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
    float values[FFM_PAIRS_SAMPLE];
    memcpy(values, pairs->differences, sizeof values);
    const float middle = median(values, trial->pairs);
    for (uint32_t i = 0; i < trial->pairs; i++)
        values[i] = values[i] > middle ? values[i] - middle : middle - values[i];
    trial->slower = middle + pairs->rare_loss;
    trial->deviation = median(values, trial->pairs);
    trial->corrects = pairs->rare_loss == 0 && pays(pairs, trial);
}
