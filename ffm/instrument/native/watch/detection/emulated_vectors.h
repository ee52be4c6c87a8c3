/* Operations of floating-point numbers that are executed in place of the CPU (emulation.h). */
#ifndef FFM_EMULATED_VECTORS_H
#define FFM_EMULATED_VECTORS_H

#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

/* Its operands are a vector register and memory. */
typedef struct {
    uint64_t address;
    uint32_t bytes; /* of memory */
    uint8_t number; /* of the register */
    uint8_t opcode;
    bool packed, doubles; /* several numbers, and of 8 bytes */
} ffm_vector_operation;

/* Execute an operation whose memory is accessible now. No exception of floating-point numbers may be unmasked in the
 * context. Its instruction pointer stays. */
void ffm_emulation_compute_vector(const ffm_vector_operation *operation, ucontext_t *context);

#endif
