#include "used_together.h"

#include "habits.h"
#include "waiters.h"

/* Uses between two waits, by how many waits had ended. */
static struct {
    uint64_t now, before; /* the last time that something was used, and the time before */
    uint32_t first;       /* whose results were used first then, as a habit's wait */
    bool begins;          /* it has just been used */
} uses;

bool ffm_together_joins(uint32_t source)
{
    return ffm_habit_spares(ffm_habit_together(source));
}

/* Nothing was used between some waits after it was issued. */
static bool is_fresh(const ffm_range *range)
{
    return range->waits >= uses.before;
}

void ffm_together_used(const ffm_range *range)
{
    if (uses.now != ffm_waiters_waits()) {
        uses.before = uses.now;
        uses.now = ffm_waiters_waits();
        uses.first = ffm_habit_of_first(range->habit);
        uses.begins = true;
        ffm_habit_turn(uses.first);
    }
    const uint32_t habit = ffm_habit_together(range->habit);
    if (is_fresh(range))
        ffm_habit_kept(habit, uses.first);
    else
        ffm_habit_broken(habit);
}

bool ffm_together_counts(const ffm_range *range)
{
    return range->joins && !range->told && range->state == FFM_RANGE_ARMED && range->covered && range->inherited == 0 &&
           is_fresh(range) && ffm_habit_is(ffm_habit_together(range->habit), uses.first);
}

bool ffm_together_begins(void)
{
    const bool begins = uses.begins;
    uses.begins = false;
    return begins;
}
