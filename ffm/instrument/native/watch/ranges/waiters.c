#include "waiters.h"

static uint64_t waiters;
static uint64_t waits;

bool ffm_waiters_add(const ffm_thread *thread)
{
    const uint64_t bit = ffm_waiters_bit(thread);
    if (__atomic_load_n(&waiters, __ATOMIC_RELAXED) & bit)
        return false;
    return (__atomic_fetch_or(&waiters, bit, __ATOMIC_RELAXED) & bit) == 0;
}

uint64_t ffm_waiters_all(void)
{
    return __atomic_load_n(&waiters, __ATOMIC_RELAXED);
}

bool ffm_waiters_several(void)
{
    uint64_t some = __atomic_load_n(&waiters, __ATOMIC_RELAXED);
    return (some & (some - 1)) != 0;
}

uint64_t ffm_waiters_waits(void)
{
    return __atomic_load_n(&waits, __ATOMIC_RELAXED);
}

void ffm_waiters_waited(void)
{
    __atomic_add_fetch(&waits, 1, __ATOMIC_RELAXED);
}
