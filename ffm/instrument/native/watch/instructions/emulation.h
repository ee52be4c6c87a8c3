/* Executes common loads, stores and arithmetic in place of the CPU, for an instruction that faulted. So its page need
 * not stay open until the CPU has returned to the program and trapped again. Safe in signal handlers. */
#ifndef FFM_EMULATION_H
#define FFM_EMULATION_H

#include <ucontext.h>

#include "decoding.h"

/* Execute the context's next instruction, whose memory is accessible now. The context then points after it. */
void ffm_emulation_execute(const ffm_decoded *instruction, ucontext_t *context);

#endif
