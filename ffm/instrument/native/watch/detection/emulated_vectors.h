/* Operations of floating-point numbers that are executed in place of the CPU (emulation.h). */
#ifndef FFM_EMULATED_VECTORS_H
#define FFM_EMULATED_VECTORS_H

#include "emulation.h"

/* Execute an operation of the kind FFM_EMULATE_VECTOR_COMPUTE, whose memory is accessible now. No exception of
 * floating-point numbers may be unmasked in the context. Its instruction pointer stays. */
void ffm_emulation_compute_vector(const ffm_emulation *emulation, ucontext_t *context);

#endif
