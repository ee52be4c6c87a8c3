/* Floating-point operations that are executed in place of the CPU (emulation.h). */
#ifndef FFM_EMULATED_VECTORS_H
#define FFM_EMULATED_VECTORS_H

#include <ucontext.h>

#include "decoding.h"

/* Execute an instruction of the kind FFM_OPERAND_VECTOR_COMPUTE, whose memory is accessible now. No floating-point
 * exception may be unmasked in the context. Its instruction pointer stays. */
void ffm_emulation_compute_vector(const ffm_decoded *instruction, ucontext_t *context);

#endif
