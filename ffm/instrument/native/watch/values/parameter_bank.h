/* The constant bank with the parameters of a kernel: what a launch puts there, and which bytes of it the code reads.
 *
 * Before Blackwell. */
#ifndef FFM_PARAMETER_BANK_H
#define FFM_PARAMETER_BANK_H

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

/* The number of four bytes as it is followed: larger ones are not told apart, because they are addresses. */
uint32_t ffm_followed_number(const ffm_given_values *given, uint32_t offset);

/* What code is given, and reads of it so far. */
typedef struct {
    uint32_t architecture;
    const ffm_given_values *given;
    ffm_values_read *result;
    bool failed; /* it may read more, through the address of the bank */
} ffm_bank_use;

/* The code reads so many bytes from a place of the bank, or from any that an index leads to from there. */
void ffm_bank_touch(ffm_bank_use *of, uint32_t place, uint32_t bytes);
void ffm_bank_touch_indexed(ffm_bank_use *of, ffm_values index, uint32_t place, uint32_t bytes);

/* What a number of four bytes or fewer in the bank may be. */
ffm_values ffm_bank_number(ffm_bank_use *of, uint32_t place, uint32_t bytes);

#endif
