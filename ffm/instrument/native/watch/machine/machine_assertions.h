/* Code for failed assertions. It calls a function of CUDA's that prints a text, and gives it the text's address, often
 * that of a copy on the stack. */
#ifndef FFM_MACHINE_ASSERTIONS_H
#define FFM_MACHINE_ASSERTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "machine_flow.h"
#include "machine_ways.h"

/* Whether only functions that bank 4 names read again what the code stores on its stack. */
bool ffm_only_asserts(const ffm_ways *ways);

/* The same as ffm_instruction_uses, for code in which all these functions are the one that prints failed assertions
 * (__assertfail): what is on the stack is text. */
bool ffm_instruction_uses_asserting(uint32_t architecture, const uint64_t word[2], uint32_t place,
                                    ffm_carriers *carriers);

#endif
