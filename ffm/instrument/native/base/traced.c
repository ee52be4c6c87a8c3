#include "traced.h"

static bool on, incomplete;

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
    return !__atomic_load_n(&incomplete, __ATOMIC_RELAXED);
}

void ffm_trace_lose(void)
{
    __atomic_store_n(&incomplete, true, __ATOMIC_RELAXED);
}
