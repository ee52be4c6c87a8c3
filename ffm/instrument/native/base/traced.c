#include "traced.h"

#include <stdint.h>

static bool on, incomplete;
static uint32_t handlers; /* that run, or were left by a jump */

bool ffm_trace_on(void)
{
    return __atomic_load_n(&on, __ATOMIC_RELAXED);
}

void ffm_trace_turn_on(void)
{
    __atomic_store_n(&on, true, __ATOMIC_RELEASE);
}

bool ffm_trace_complete(void)
{
    return !__atomic_load_n(&incomplete, __ATOMIC_RELAXED) && __atomic_load_n(&handlers, __ATOMIC_SEQ_CST) == 0;
}

void ffm_trace_lose(void)
{
    __atomic_store_n(&incomplete, true, __ATOMIC_RELAXED);
}

void ffm_trace_handler_begins(void)
{
    __atomic_add_fetch(&handlers, 1, __ATOMIC_SEQ_CST);
}

void ffm_trace_handler_over(void)
{
    __atomic_sub_fetch(&handlers, 1, __ATOMIC_SEQ_CST);
}
