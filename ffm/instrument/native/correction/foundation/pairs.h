/* Whether a correction pays, from pairs of an original and a corrected block of calls. */
#ifndef FFM_PAIRS_H
#define FFM_PAIRS_H

#include <stdbool.h>
#include <stdint.h>

#include "remedy_records.h"

/* The older half of a sample this large is forgotten. */
enum { FFM_PAIRS_SAMPLE = 32 };

/* The last pairs of a unit, as many as its trial counts. */
typedef struct {
    float differences[FFM_PAIRS_SAMPLE]; /* (corrected - original) / the larger, times from call to call */
    float errors[FFM_PAIRS_SAMPLE];      /* squares of their standard errors, from how calls of one block vary */
    double rare_loss; /* what rare long calls, which pairs hardly ever contain, cost each call: a share of the original
                         time; 0 if it is not known */
} ffm_pairs;

/* Add a pair, given the nanoseconds from one call to the next in both of its blocks and the square of the standard
 * error of their difference, and judge again. */
void ffm_pairs_add(ffm_pairs *pairs, ffm_remedy_trial *trial, double original_ns, double corrected_ns,
                   double error_squared_ns);

/* Whether the pairs so far leave open which way is faster, and a few more may show it. */
bool ffm_pairs_leave_open(const ffm_pairs *pairs, const ffm_remedy_trial *trial);

/* How many of the last pairs, up to four, contradict what is done. */
uint32_t ffm_pairs_contradictions(const ffm_pairs *pairs, const ffm_remedy_trial *trial);

#endif
