/* A budget for seeing when results are used, where no verdict rests on it. Stage 3 has found which waits are needed;
 * stage 4 only measures how long after them the first use comes. So it watches the first results of each source (a call
 * site, or what the launches of one write to a block), fewer once watching has taken some time, and further ones only
 * while it has taken less than a share of the run. It then goes on for a while, so that most results of a wait are
 * watched together, or none. Others count as used at an unknown time. */
#ifndef FFM_WATCH_BUDGET_H
#define FFM_WATCH_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

/* From now on, there is a budget. A fault costs this many nanoseconds before it is handled. */
void ffm_watch_budget_open(uint64_t fault_cost);
bool ffm_watch_budget_is_open(void);

/* Whether the next result of a source is watched; always without a budget. Each answer counts. Under the lock of the
 * ranges. */
bool ffm_watch_budget_allows(uint32_t source);

/* Handling a fault, or the ranges around a call, has taken the time since `since`. */
void ffm_watch_budget_spend(uint64_t since, bool fault);

#endif
