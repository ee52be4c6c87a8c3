/* The part of Frida's GumInvocationContext that an attached callback needs.
 *
 * The layout is public in Frida's gum headers (guminvocationcontext.h, gumdefs.h, x86-64) since version 12. The
 * collector is built without them, so that it needs no copy of gum; tests/instrument checks the layout against a live
 * hook. */
#ifndef FFM_INVOCATION_H
#define FFM_INVOCATION_H

#include <stdint.h>

#include "stacks.h"

typedef struct {
    uint64_t rip, r15, r14, r13, r12, r11, r10, r9, r8, rdi, rsi, rbp, rsp, rbx, rdx, rcx, rax;
} gum_cpu_context;

typedef struct {
    void *function;
    gum_cpu_context *cpu_context;
} gum_invocation;

static inline ffm_registers ffm_registers_of(const gum_cpu_context *cpu)
{
    return (ffm_registers){.instruction = cpu->rip,
                           .stack = cpu->rsp,
                           .frame = cpu->rbp,
                           .rbx = cpu->rbx,
                           .r12 = cpu->r12,
                           .r13 = cpu->r13,
                           .r14 = cpu->r14,
                           .r15 = cpu->r15};
}

#endif
