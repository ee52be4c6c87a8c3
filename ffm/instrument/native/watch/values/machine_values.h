/* What GPU instructions leave in registers, and what they read from the bank with the parameters, before Blackwell. */
#ifndef FFM_MACHINE_VALUES_H
#define FFM_MACHINE_VALUES_H

#include <stdint.h>

#include "parameter_bank.h"
#include "register_values.h"

/* Execute an instruction all of whose reads are known (ffm_instruction_reads). Returns whether its guard lets it be
 * executed: FFM_FALSE, FFM_TRUE or FFM_EITHER. */
uint8_t ffm_execute(ffm_bank_use *of, const uint64_t word[2], ffm_held *held);

#endif
