/* What instructions of a GPU leave in registers, and read of the bank with the parameters, before Blackwell.
 *
 * Only those are calculated of which all bits are known; of others, all that they may write becomes unknown. */
#ifndef FFM_MACHINE_VALUES_H
#define FFM_MACHINE_VALUES_H

#include <stdbool.h>
#include <stdint.h>

#include "register_values.h"

enum { FFM_PARAMETERS_FOLLOWED = 4096 };

/* What a launch gives a kernel. */
typedef struct {
    uint8_t bytes[FFM_PARAMETERS_FOLLOWED]; /* its parameters */
    bool known[FFM_PARAMETERS_FOLLOWED];    /* which bytes of them belong to one */
    uint32_t count;
    uint32_t blocks[3]; /* in x, y and z */
} ffm_given_values;

/* Bits for the bytes of parameters that may be read, and for the words of four bytes whose values matter for that. */
typedef struct {
    uint8_t read[FFM_PARAMETERS_FOLLOWED / 8], matters[FFM_PARAMETERS_FOLLOWED / 4 / 8];
} ffm_values_read;

/* The number of four bytes as it is followed: no larger one is told from others, since those are addresses. */
uint32_t ffm_followed_number(const ffm_given_values *given, uint32_t offset);

/* What code is given, and reads of it so far. */
typedef struct {
    uint32_t architecture;
    const ffm_given_values *given;
    ffm_values_read *result;
    bool failed; /* it may read more, by the address of the bank */
} ffm_bank_use;

/* Execute an instruction all of whose reads are known (ffm_instruction_reads). Returns whether its guard lets it be
 * executed: FFM_FALSE, FFM_TRUE or FFM_EITHER. */
uint8_t ffm_execute(ffm_bank_use *of, const uint64_t word[2], ffm_held *held);

#endif
