#include "habits.h"

#include <stddef.h>

/* If a hundred in a row were used so, at most 3 in a hundred others are not, with a confidence of 95 %. */
enum { SITES = 1 << 14, HABIT = 100 };

typedef struct {
    uint32_t site, wait;
    uint32_t alike; /* downloads in a row that were used so, or spared */
    uint32_t spare; /* so many more before the next one that is watched */
} habit;

static habit of_site[SITES];

static habit *known_of(uint32_t site)
{
    habit *known = &of_site[site % SITES];
    return known->site == site ? known : NULL;
}

/* A number below another (G. Marsaglia, "Xorshift RNGs", 2003). */
static uint32_t any_below(uint32_t end)
{
    static uint32_t state = 1;
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state % end;
}

bool ffm_habit_spares(uint32_t site)
{
    habit *known = known_of(site);
    if (known == NULL || known->spare == 0)
        return false;
    known->spare--;
    known->alike++;
    return true;
}

bool ffm_habit_is(uint32_t site, uint32_t wait)
{
    const habit *known = known_of(site);
    return known != NULL && known->alike >= HABIT && known->wait == wait;
}

void ffm_habit_kept(uint32_t site, uint32_t wait)
{
    habit *known = &of_site[site % SITES];
    if (known->site != site || known->wait != wait)
        *known = (habit){.site = site, .wait = wait};
    known->alike++;
    if (known->alike >= HABIT && known->spare == 0)
        known->spare = any_below(2 * (known->alike / HABIT) + 1);
}

void ffm_habit_broken(uint32_t site)
{
    habit *known = known_of(site);
    if (known != NULL)
        known->alike = known->spare = 0;
}
