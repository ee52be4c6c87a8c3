/* Code that fails an assertion: it calls a function of CUDA's that prints the text to which it is given addresses,
 * often of a copy on its stack. */
#ifndef FFM_MACHINE_ASSERTIONS_H
#define FFM_MACHINE_ASSERTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "machine_flow.h"
#include "machine_ways.h"

/* Whether nothing that the code stores on its stack is read again but by functions that bank 4 names. */
bool ffm_only_asserts(const ffm_ways *ways);

/* What one instruction does, as ffm_instruction_uses, of such code in which these functions are all the one that prints
 * failed assertions (__assertfail): what is on the stack is text. */
bool ffm_instruction_uses_asserting(uint32_t architecture, const uint64_t word[2], uint32_t place,
                                    ffm_carriers *carriers);

#endif
