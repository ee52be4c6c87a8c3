#include "pairs.h"

#include <stdbool.h>
#include <string.h>

/* One pair alone counts only if its loss is clear. */
static const double clear_loss = 0.1;

/* All but the last pairs are forgotten if so many in a row contradict the others: programs have phases. */
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

/* Whether corrected calls lose time beyond what the sample leaves open. */
static bool pays(const ffm_remedy_trial *trial)
{
    if (trial->slower <= 0)
        return true;
    if (trial->pairs == 1)
        return trial->slower < clear_loss;
    const double error = error_of_median * trial->deviation;
    return trial->slower * trial->slower * trial->pairs <= error * error;
}

uint32_t ffm_pairs_contradictions(const ffm_pairs *pairs, const ffm_remedy_trial *trial)
{
    uint32_t found = 0;
    while (found < CONTRADICT && found < trial->pairs) {
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
    trial->pairs = kept;
}

void ffm_pairs_add(ffm_pairs *pairs, ffm_remedy_trial *trial, double original_ns, double corrected_ns)
{
    if (trial->pairs == FFM_PAIRS_SAMPLE)
        keep_last(pairs, trial, FFM_PAIRS_SAMPLE / 2);
    pairs->differences[trial->pairs++] =
        (float)((corrected_ns - original_ns) / (corrected_ns > original_ns ? corrected_ns : original_ns));
    if (ffm_pairs_contradictions(pairs, trial) == CONTRADICT)
        keep_last(pairs, trial, CONTRADICT);
    float values[FFM_PAIRS_SAMPLE];
    memcpy(values, pairs->differences, sizeof values);
    const float middle = median(values, trial->pairs);
    for (uint32_t i = 0; i < trial->pairs; i++)
        values[i] = values[i] > middle ? values[i] - middle : middle - values[i];
    trial->slower = middle + pairs->rare_loss;
    trial->deviation = median(values, trial->pairs);
    trial->corrects = pairs->rare_loss == 0 && pays(trial);
}
