#include "steps.h"

#include "clock.h"

enum { PAGE = 4096, SLOTS = 1 << 12 };
enum { SHARE = 16 };                  /* of the time since the start */
enum { AT_FIRST = 20 * 1000 * 1000 }; /* nanoseconds that may be spent in any case */
enum { LONG = 4 };                    /* faults; what takes longer has waited for a processor */
enum { BUSY = 1 << 15 };              /* most steps on a page */

static struct {
    uint64_t opened, fault, spent; /* nanoseconds */
    uint64_t steps, pages;         /* all steps, and how many slots have some */
    uint32_t on_page[SLOTS];       /* pages that share a slot count as one */
} all;

void ffm_steps_open(uint64_t fault_cost)
{
    all.opened = ffm_now();
    all.fault = 2 * fault_cost; /* there and back */
}

/* Of what a page is stepped on at most: as much as others at the share, nothing at twice the share. */
static double limit(uint64_t now)
{
    const double share = AT_FIRST + (double)(now - all.opened) / SHARE;
    const double left = 2 * share - (double)__atomic_load_n(&all.spent, __ATOMIC_RELAXED);
    if (left >= share)
        return BUSY;
    return left <= 0 ? 0 : (double)all.steps / (double)all.pages * left / share;
}

ffm_step ffm_steps_next(uint64_t page, uint64_t now)
{
    uint32_t *steps = &all.on_page[page / PAGE % SLOTS];
    all.pages += *steps == 0;
    all.steps++;
    if (*steps < UINT32_MAX)
        ++*steps;
    if (*steps > BUSY)
        return FFM_STEP_NEVER;
    return *steps > limit(now) ? FFM_STEP_COSTLY : FFM_STEP_OVER;
}

void ffm_steps_spend(uint64_t since)
{
    const uint64_t taken = ffm_now() - since, most = LONG * all.fault;
    __atomic_add_fetch(&all.spent, (taken < most ? taken : most) + all.fault, __ATOMIC_RELAXED);
}
