/* Which of its parameters a kernel reads when it is launched with certain values and a certain number of blocks. What
 * it picks by an index is known if the index comes from the number of a block, or from a loop whose length numbers
 * among the parameters give.
 *
 * All paths through the code are followed that are possible then. Registers above those of its results keep their
 * values in a call of a function elsewhere: a compiler relies on nothing else across a call. */
#ifndef FFM_PARAMETER_VALUES_H
#define FFM_PARAMETER_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "machine_values.h"

/* False if it is not known what the code reads. All instructions of the code must be known (ffm_instruction_reads). */
bool ffm_parameter_values(uint32_t architecture, const uint8_t *code, size_t bytes, const ffm_given_values *given,
                          ffm_values_read *result);

#endif
