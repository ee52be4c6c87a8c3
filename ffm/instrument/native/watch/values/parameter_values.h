/* Which of its parameters a kernel reads when it is launched in a certain way: with how many blocks, and with which
 * values. What it picks by an index is known where the number of a block gives the index, or numbers among the
 * parameters tell how often a loop runs.
 *
 * All ways through the code are followed that are possible so. What a function elsewhere leaves in registers above
 * those of its results is what was there: a compiler keeps nothing else across a call. */
#ifndef FFM_PARAMETER_VALUES_H
#define FFM_PARAMETER_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "machine_values.h"

/* False if it is not known what the code reads. Of code all of whose instructions are known
 * (ffm_instruction_reads). */
bool ffm_parameter_values(uint32_t architecture, const uint8_t *code, size_t bytes, const ffm_given_values *given,
                          ffm_values_read *result);

#endif
