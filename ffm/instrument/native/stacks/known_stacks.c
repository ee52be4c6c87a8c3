#include "known_stacks.h"

#include <stddef.h>

#include "goroutines.h"
#include "modules.h"
#include "python_frames.h"
#include "unwind_from.h"
#include "unwinding.h"

bool ffm_known_stack_find(const ffm_known_stacks *known, const void *caller, uint64_t base, uint32_t *stack)
{
    for (uint32_t i = 0; i < FFM_KNOWN_STACKS; i++) {
        const ffm_known_stack *one = &known->stacks[i];
        if (one->caller != caller || one->base != base || one->modules != ffm_modules_generation())
            continue;
        uint32_t same = 0;
        while (same < one->count && *(const uint64_t *)one->returns[same].place == one->returns[same].address)
            same++;
        *stack = one->stack;
        if (same == one->count)
            return true;
    }
    return false;
}

bool ffm_known_stack_met(ffm_known_stacks *known, const void *caller, uint64_t base)
{
    const uint64_t mixed = ((uint64_t)caller ^ base << 16) * 0x9E3779B97F4A7C15ULL;
    uint64_t *met = &known->met[mixed >> 32 & (FFM_KNOWN_STACKS - 1)];
    const bool again = *met == mixed;
    *met = mixed;
    return again;
}

/* The next frame outwards, and where the return address of its callee lies. */
static bool step(unw_cursor_t *cursor, uint64_t *place, uint64_t *address)
{
    unw_word_t stack, instruction;
    if (unw_step(cursor) <= 0 || unw_get_reg(cursor, UNW_REG_IP, &instruction) != 0 || instruction == 0 ||
        unw_get_reg(cursor, UNW_REG_SP, &stack) != 0)
        return false;
    *place = stack - sizeof(uint64_t);
    *address = instruction;
    return true;
}

/* False if a frame has its return address elsewhere, as a signal handler's has, or if a goroutine's stack follows. */
static bool walk(ffm_known_stack *fresh, unw_cursor_t *cursor, bool inside)
{
    uint64_t place, address;
    while (fresh->count < FFM_KNOWN_RETURNS && step(cursor, &place, &address)) {
        inside = inside || address == (uint64_t)fresh->caller;
        if (!inside)
            continue;
        if (*(const uint64_t *)place != address || ffm_goroutine_waits_at(address))
            return false;
        fresh->returns[fresh->count].place = place;
        fresh->returns[fresh->count++].address = address;
    }
    return fresh->count > 0;
}

void ffm_known_stack_add(ffm_known_stacks *known, const void *caller, uint64_t base, const ffm_registers *from,
                         uint32_t stack)
{
    unw_cursor_t cursor;
    unw_context_t context;
    ffm_known_stack fresh = {.caller = caller, .base = base, .modules = ffm_modules_generation(), .stack = stack};
    if (ffm_python_is_readable())
        return;
    ffm_unwinding_begin();
    const bool started = from != NULL ? ffm_unwind_from(&cursor, &context, from)
                                      : unw_getcontext(&context) == 0 && unw_init_local(&cursor, &context) == 0;
    const bool whole = started && walk(&fresh, &cursor, from != NULL);
    ffm_unwinding_end();
    if (!whole)
        return;
    ffm_known_stack *to = &known->stacks[known->added++ % FFM_KNOWN_STACKS];
    /* A handler that interrupts this must not find half of it. */
    *(const void *volatile *)&to->caller = NULL;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    fresh.caller = NULL;
    *to = fresh;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    *(const void *volatile *)&to->caller = caller;
}
