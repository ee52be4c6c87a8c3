/* Whether a kernel can use a word of its parameters as an address, from its machine code. */
#ifndef FFM_PARAMETER_FLOW_H
#define FFM_PARAMETER_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether code of `bytes` bytes, all of whose instructions are known (ffm_instruction_reads), may use four bytes of
 * constant bank 0 as the upper half of an address: follow that address, or keep it in memory. `asserts` says that bank
 * 4 names no function but the one that prints failed assertions. */
bool ffm_may_be_address(uint32_t architecture, const uint8_t *code, size_t bytes, uint32_t place, bool asserts);

#endif
