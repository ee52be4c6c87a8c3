#include "waiters.h"

static uint64_t waiters;

void ffm_waiters_add(const ffm_thread *thread)
{
    __atomic_or_fetch(&waiters, ffm_waiters_bit(thread), __ATOMIC_RELAXED);
}

bool ffm_waiters_several(void)
{
    uint64_t some = __atomic_load_n(&waiters, __ATOMIC_RELAXED);
    return (some & (some - 1)) != 0;
}
