/* Registers from which an unwinder can start. */
#ifndef FFM_REGISTERS_H
#define FFM_REGISTERS_H

#include <stdint.h>

/* At a function's entry. */
typedef struct {
    uint64_t instruction, stack, frame;
    uint64_t rbx, r12, r13, r14, r15;
} ffm_registers;

#endif
