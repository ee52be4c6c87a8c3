/* Where unwinding starts from given registers. */
#ifndef FFM_UNWIND_FROM_H
#define FFM_UNWIND_FROM_H

#define UNW_LOCAL_ONLY
#include <libunwind.h>
#include <stdbool.h>
#include <string.h>

#include "registers.h"

static inline bool ffm_unwind_from(unw_cursor_t *cursor, unw_context_t *context, const ffm_registers *registers)
{
    memset(context, 0, sizeof *context);
    greg_t *general = context->uc_mcontext.gregs;
    general[REG_RIP] = (greg_t)registers->instruction;
    general[REG_RSP] = (greg_t)registers->stack;
    general[REG_RBP] = (greg_t)registers->frame;
    general[REG_RBX] = (greg_t)registers->rbx;
    general[REG_R12] = (greg_t)registers->r12;
    general[REG_R13] = (greg_t)registers->r13;
    general[REG_R14] = (greg_t)registers->r14;
    general[REG_R15] = (greg_t)registers->r15;
    return unw_init_local2(cursor, context, UNW_INIT_SIGNAL_FRAME) == 0;
}

#endif
