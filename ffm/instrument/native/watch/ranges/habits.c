#include "habits.h"

#include <stddef.h>

/* If a hundred in a row were used in this way, at most 3 in a hundred others are not, with a confidence of 95 %. */
enum { SOURCES = 1 << 14, WAITS = 1 << 12, HABIT = 100 };
enum { FEW = 16, PAGE = 4096 }; /* so many uses on a page are enough to look for the next one there only */

typedef struct {
    uint32_t source, wait;
    uint32_t alike; /* watched results in a row that were used in this way, counted up to what a habit takes */
    uint32_t there; /* the last ones of them whose first use was on the same page, likewise */
    uint64_t page;
    bool failed; /* a result was not used there */
} habit;

typedef struct {
    uint32_t wait;
    uint32_t alike; /* turns in a row since a habit began, or all had been broken */
    uint32_t spare; /* so many more turns before the next one in which results are watched */
    bool watched;   /* results are watched in this turn, and none of them has been used yet */
} row;

static habit habits[SOURCES];
static row rows[WAITS];

static habit *known_of(uint32_t source)
{
    habit *known = &habits[source % SOURCES];
    return known->source == source ? known : NULL;
}

static row *row_of(uint32_t wait)
{
    row *turns = &rows[wait % WAITS];
    if (turns->wait != wait)
        *turns = (row){.wait = wait};
    return turns;
}

/* Knuth's multiplicative hash, of the address and then with the site. */
uint32_t ffm_habit_of_block(uint32_t site, uint64_t block)
{
    const uint64_t odd = 0x9E3779B97F4A7C15ULL;
    return (uint32_t)((((block * odd) ^ site) * odd) >> 32);
}

uint32_t ffm_habit_of_uploads(uint32_t site)
{
    return ~site;
}

static uint32_t another(uint32_t source, uint64_t odd)
{
    return (uint32_t)((source * odd) >> 24);
}

uint32_t ffm_habit_together(uint32_t source)
{
    return another(source, 0x9E3779B97F4A7C15ULL);
}

uint32_t ffm_habit_of_first(uint32_t source)
{
    return another(source, 0xC2B2AE3D27D4EB4FULL);
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

bool ffm_habit_spares(uint32_t source)
{
    const habit *known = known_of(source);
    return known != NULL && known->alike >= HABIT && row_of(known->wait)->spare > 0;
}

bool ffm_habit_is(uint32_t source, uint32_t wait)
{
    const habit *known = known_of(source);
    return known != NULL && known->alike >= HABIT && known->wait == wait;
}

void ffm_habit_turn(uint32_t wait)
{
    row *turns = row_of(wait);
    turns->alike++;
    turns->watched = turns->spare == 0;
    if (turns->spare > 0)
        turns->spare--;
}

void ffm_habit_kept(uint32_t source, uint32_t wait)
{
    habit *known = &habits[source % SOURCES];
    if (known->source != source)
        *known = (habit){.source = source, .wait = wait};
    if (known->wait != wait)
        *known = (habit){.source = source, .wait = wait, .failed = known->failed};
    row *turns = row_of(wait);
    if (known->alike == HABIT) {
        if (turns->watched && turns->alike >= HABIT)
            turns->spare = any_below(2 * (turns->alike / HABIT) + 1);
        turns->watched = false;
    } else if (++known->alike == HABIT) {
        *turns = (row){.wait = wait, .alike = HABIT}; /* no longer than the newest habit */
    }
}

void ffm_habit_broken(uint32_t source)
{
    habit *known = known_of(source);
    if (known != NULL && known->alike == HABIT)
        *row_of(known->wait) = (row){.wait = known->wait};
    if (known == NULL)
        return;
    known->failed = known->failed || known->there >= FEW;
    known->alike = known->there = 0;
}

void ffm_habit_all_broken(uint32_t source)
{
    ffm_habit_broken(source);
    ffm_habit_broken(ffm_habit_together(source));
}

void ffm_habit_used_at(uint32_t source, uint64_t address)
{
    habit *known = known_of(source);
    const uint64_t page = address & ~(uint64_t)(PAGE - 1);
    if (known == NULL)
        return;
    if (known->page != page)
        known->there = 0;
    known->page = page;
    known->there += known->there < HABIT;
}

uint64_t ffm_habit_page(uint32_t source, uint32_t wait)
{
    const habit *known = known_of(source);
    if (known == NULL || known->wait != wait || known->there < (uint32_t)(known->failed ? HABIT : FEW))
        return 0;
    return known->page;
}
