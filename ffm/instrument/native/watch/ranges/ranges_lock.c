#include "ranges_lock.h"

#include <sched.h>

#include "gathering.h"
#include "signal_mask.h"

static struct {
    bool locked;
    uint32_t version; /* odd while a range changes */
} table;

static __thread bool holding __attribute__((tls_model("initial-exec")));

/* A mutex must not be taken in a signal handler. */
void ffm_ranges_lock_in_handler(void)
{
    while (__atomic_test_and_set(&table.locked, __ATOMIC_ACQUIRE))
        sched_yield();
}

void ffm_ranges_unlock_in_handler(void)
{
    __atomic_clear(&table.locked, __ATOMIC_RELEASE);
}

void ffm_ranges_lock(void)
{
    ffm_signals_hold();
    ffm_ranges_lock_in_handler();
    holding = true;
}

void ffm_ranges_unlock(void)
{
    holding = false;
    ffm_ranges_unlock_in_handler();
    ffm_signals_release();
}

bool ffm_ranges_held(void)
{
    return holding;
}

void ffm_ranges_begin_change(void)
{
    if (ffm_gathering())
        return;
    __atomic_store_n(&table.version, table.version + 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
}

void ffm_ranges_end_change(void)
{
    if (ffm_gathering())
        return;
    __atomic_store_n(&table.version, table.version + 1, __ATOMIC_RELEASE);
}

bool ffm_ranges_changed(uint32_t version)
{
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return version % 2 != 0 || __atomic_load_n(&table.version, __ATOMIC_RELAXED) != version;
}

uint32_t ffm_ranges_version(void)
{
    return __atomic_load_n(&table.version, __ATOMIC_ACQUIRE);
}

void ffm_ranges_begin_versions(void)
{
    table.version = 0;
}
