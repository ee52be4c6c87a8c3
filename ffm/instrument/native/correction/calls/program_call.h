/* One driver call of the program, and what may be done about it. */
#ifndef FFM_REMEDY_PROGRAM_CALL_H
#define FFM_REMEDY_PROGRAM_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "catalogue.h"
#include "counters.h"
#include "remedy_records.h"

typedef struct {
    uint32_t index; /* in the catalogue */
    const ffm_function *function;
    const uint64_t *arguments;
    const ffm_remedy_site *site; /* NULL if the call is not planned */
    ffm_remedy_tally *tally;     /* of the site */
    bool corrected;              /* whether its unit is being corrected now (trials.h) */
} ffm_program_call;

/* Call the original function. If device memory is short, free pooled memory first. */
uint64_t ffm_forward(const ffm_program_call *call);

/* Make a planned call wait as it would uncorrected; `why` is the counter of the reason. */
uint64_t ffm_fall_back(const ffm_program_call *call, uint64_t *why);

/* Whether an action is planned for a call, and corrections are made at all. */
bool ffm_is_planned(const ffm_program_call *call, uint32_t action);

/* Whether a planned action is to be taken now. If it is not safe at the moment, the reason is counted. */
bool ffm_may(const ffm_program_call *call, uint32_t action);

/* Argument by its position in the catalogue; 0 if the function has none. */
static inline uint64_t ffm_argument(const ffm_program_call *call, int8_t position)
{
    return position < 0 ? 0 : call->arguments[position];
}

#endif
