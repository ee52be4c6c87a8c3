#include "watch_budget.h"

#include "clock.h"

enum { SOURCES = 1 << 14 };
enum { FEW = 4 };                     /* results of a source that are watched in any case, */
enum { FIRST = 32 };                  /* and so many of each until watching has taken this many nanoseconds: */
enum { AT_FIRST = 10 * 1000 * 1000 }; /* and others only within this share of the time since the start: */
enum { SHARE = 32 };

static struct {
    bool open, used_up;
    uint64_t opened, fault, spent; /* nanoseconds */
} budget;

static struct {
    uint32_t source, watched;
} first[SOURCES];

void ffm_watch_budget_open(uint64_t fault_cost)
{
    budget.open = true;
    budget.opened = ffm_now();
    budget.fault = 2 * fault_cost; /* there and back */
}

bool ffm_watch_budget_is_open(void)
{
    return budget.open;
}

/* Once it is used up, half of it must be available again, so that several results in a row are watched. */
static bool is_left(void)
{
    const uint64_t most = (ffm_now() - budget.opened) / SHARE;
    const uint64_t spent = __atomic_load_n(&budget.spent, __ATOMIC_RELAXED);
    budget.used_up = spent >= (budget.used_up ? most / 2 : most);
    return !budget.used_up;
}

bool ffm_watch_budget_allows(uint32_t source)
{
    if (!budget.open)
        return true;
    if (first[source % SOURCES].source != source) {
        first[source % SOURCES].source = source;
        first[source % SOURCES].watched = 0;
    }
    uint32_t *watched = &first[source % SOURCES].watched;
    const bool costly = __atomic_load_n(&budget.spent, __ATOMIC_RELAXED) > AT_FIRST;
    if (*watched >= (uint32_t)(costly ? FEW : FIRST))
        return is_left();
    ++*watched;
    return true;
}

void ffm_watch_budget_spend(uint64_t since, bool fault)
{
    if (budget.open)
        __atomic_add_fetch(&budget.spent, ffm_now() - since + (fault ? budget.fault : 0), __ATOMIC_RELAXED);
}
