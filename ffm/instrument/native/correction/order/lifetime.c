#include "lifetime.h"

#include "cache.h"
#include "held.h"
#include "order.h"
#include "pool.h"
#include "staging.h"
#include "state.h"

static void (*deliver_downloads)(void);

static void stop(void)
{
    deliver_downloads();
    ffm_order_pay();
    ffm_pool_give_back();
    ffm_cache_give_back();
}

void ffm_lifetime_open(void (*deliver)(void))
{
    deliver_downloads = deliver;
    ffm_state_on_stop(stop);
}

void ffm_lifetime_context_ends(void)
{
    ffm_order_forget();
    ffm_pool_forget();
    ffm_cache_forget();
    ffm_held_lost();
    ffm_staging_forget();
    ffm_state_forget_context();
}

void ffm_lifetime_after_fork(void)
{
    ffm_state_after_fork();
    ffm_lifetime_context_ends();
}
