/* What a signal handler knows about the code that it interrupted. */
#ifndef FFM_HANDLERS_H
#define FFM_HANDLERS_H

#include <ucontext.h>

#include "stacks.h"

static inline ffm_registers ffm_registers_in(const ucontext_t *context)
{
    const greg_t *general = context->uc_mcontext.gregs;
    return (ffm_registers){.instruction = (uint64_t)general[REG_RIP],
                           .stack = (uint64_t)general[REG_RSP],
                           .frame = (uint64_t)general[REG_RBP],
                           .rbx = (uint64_t)general[REG_RBX],
                           .r12 = (uint64_t)general[REG_R12],
                           .r13 = (uint64_t)general[REG_R13],
                           .r14 = (uint64_t)general[REG_R14],
                           .r15 = (uint64_t)general[REG_R15]};
}

#endif
