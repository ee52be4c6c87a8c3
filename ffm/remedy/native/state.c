#include "state.h"

#include "cache.h"
#include "counters.h"
#include "downloads.h"
#include "held.h"
#include "order.h"
#include "pool.h"
#include "staging.h"

pthread_mutex_t ffm_lock = PTHREAD_MUTEX_INITIALIZER;

static bool stopped;
static uint32_t captures;
static uint64_t context;

void ffm_stop(uint32_t reason)
{
    if (__atomic_exchange_n(&stopped, true, __ATOMIC_ACQ_REL))
        return;
    ffm_counters->stopped = reason;
    ffm_downloads_deliver_all(&ffm_counters->deliveries_called, true);
    ffm_order_pay();
    ffm_pool_give_back();
    ffm_cache_give_back();
}

bool ffm_stopped(void)
{
    return __atomic_load_n(&stopped, __ATOMIC_ACQUIRE);
}

void ffm_capture(bool begins)
{
    if (begins)
        __atomic_add_fetch(&captures, 1, __ATOMIC_ACQ_REL);
    else if (__atomic_load_n(&captures, __ATOMIC_ACQUIRE) > 0)
        __atomic_sub_fetch(&captures, 1, __ATOMIC_ACQ_REL);
}

bool ffm_capturing(void)
{
    return __atomic_load_n(&captures, __ATOMIC_ACQUIRE) > 0;
}

void ffm_context_seen(uint64_t seen)
{
    if (seen == 0)
        return;
    uint64_t expected = 0;
    if (!__atomic_compare_exchange_n(&context, &expected, seen, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) &&
        expected != seen)
        ffm_stop(FFM_STOP_CONTEXTS);
}

void ffm_context_ends(void)
{
    ffm_order_forget();
    ffm_pool_forget();
    ffm_cache_forget();
    ffm_held_lost();
    ffm_staging_forget();
    __atomic_store_n(&context, 0, __ATOMIC_RELEASE);
}

void ffm_state_after_fork(void)
{
    pthread_mutex_init(&ffm_lock, NULL); /* another thread of the parent may have held it */
    stopped = false;
    captures = 0;
    ffm_context_ends();
}
