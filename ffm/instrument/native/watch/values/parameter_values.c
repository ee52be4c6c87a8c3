#include "parameter_values.h"

#include <string.h>
#include <sys/mman.h>

#include "machine_barriers.h"
#include "machine_encoding.h"
#include "machine_ways.h"
#include "new_pages.h"

/* How many turns of loops are told apart, states of registers kept, and instructions followed; and how often a state is
 * joined before what changes becomes unknown. */
enum { TURNS = 32, STATES = 1 << 13, STEPS = 1 << 18, MANY_JOINS = 4 };

/* Before an instruction to which a way leads, in a turn of a loop whose turns are counted. */
typedef struct {
    ffm_held held;
    uint32_t joins;
    bool changed;
} state;

typedef struct {
    ffm_ways ways;
    ffm_bank_use bank;
    uint32_t *places;  /* of states, by turn and instruction, counted from 1 */
    state *states;     /* and one more, of the way that is followed */
    uint32_t *waiting; /* places in `places` */
    uint32_t used, waits, steps;
} run;

static void fail(run *of)
{
    of->bank.failed = true;
}

static void join(run *of, uint32_t turn, size_t number, const ffm_held *held)
{
    if (number >= of->ways.count)
        return;
    const uint32_t place = (uint32_t)(turn * of->ways.count + number);
    state *at;
    bool changed = true;
    if (of->places[place] == 0) {
        if (of->used == STATES) {
            fail(of);
            return;
        }
        of->places[place] = ++of->used;
        at = &of->states[of->used - 1];
        at->held = *held;
    } else {
        at = &of->states[of->places[place] - 1];
        changed = ffm_held_join(&at->held, held, at->joins++ > MANY_JOINS);
    }
    if (changed && !at->changed) {
        at->changed = true;
        of->waiting[of->waits++] = place;
    }
}

/* An instruction that was reached, and executed as far as ffm_execute says. */
typedef struct {
    uint32_t turn;
    size_t number;
    const uint64_t *word;
    const ffm_held *held;
    uint8_t executed;
} step;

/* Where a way goes on from there. */
typedef struct {
    run *of;
    const step *from;
} way;

static void join_at(void *context, size_t number)
{
    const way *next = context;
    join(next->of, next->from->turn, number, next->from->held);
}

/* Whether threads leave there. That is not known if it depends on whether they are together (bits 32 and 33), or on
 * uniform predicates. */
static uint8_t leaves(const step *at)
{
    const uint32_t kind = ffm_kind(at->word);
    const uint8_t other = ffm_predicate(at->held, ffm_field(at->word[1], 87 - 64, 4));
    if (kind == FFM_BRANCH_UNIFORM)
        return FFM_EITHER;
    if (at->executed == FFM_FALSE || other == FFM_FALSE)
        return FFM_FALSE;
    const bool depends = kind == FFM_BRANCH && (at->word[0] >> 32 & 3) != 0;
    return at->executed == FFM_TRUE && other == FFM_TRUE && !depends ? FFM_TRUE : FFM_EITHER;
}

/* Go on from an instruction. Returns whether the next one may follow. */
static bool lead(run *of, const step *at)
{
    const uint32_t kind = ffm_kind(at->word);
    const bool ends = kind == FFM_EXIT || kind == FFM_RETURN, jumps = kind == FFM_BRANCH || kind == FFM_BRANCH_UNIFORM;
    const uint8_t left = ends || jumps ? leaves(at) : FFM_FALSE;
    way next = {of, at};
    if (kind == FFM_CALL || ffm_begins_collective(at->word) || (jumps && left != FFM_FALSE)) {
        const size_t target = (size_t)ffm_ways_target(&of->ways, at->word, at->number);
        const bool decided = left == FFM_TRUE && ffm_field(at->word[0], 12, 4) != FFM_ALWAYS;
        const bool turns = target <= at->number && decided && at->turn + 1 < TURNS;
        join(of, turns ? at->turn + 1 : at->turn, target, at->held);
    }
    if (kind == FFM_RETURN && left != FFM_FALSE)
        ffm_ways_returns(&of->ways, join_at, &next);
    if (kind == FFM_MEET || kind == FFM_END_COLLECTIVE)
        ffm_ways_meets(&of->ways, at->number, join_at, &next);
    return left != FFM_TRUE;
}

/* Whether ways come together before an instruction. */
static bool is_met(const run *of, uint32_t turn, size_t number)
{
    return number < of->ways.count && of->places[turn * of->ways.count + number] != 0;
}

static void follow(run *of, uint32_t place)
{
    const uint32_t turn = (uint32_t)(place / of->ways.count);
    state *from = &of->states[of->places[place] - 1];
    ffm_held *held = &of->states[STATES].held; /* stacks may be small */
    *held = from->held;
    from->changed = false;
    for (size_t number = place % of->ways.count; number < of->ways.count && !of->bank.failed; number++) {
        uint64_t word[2];
        ffm_ways_instruction(&of->ways, number, word);
        if (++of->steps > STEPS)
            fail(of);
        const step at = {turn, number, word, held, ffm_execute(&of->bank, word, held)};
        if (!lead(of, &at))
            return;
        if (is_met(of, turn, number + 1)) {
            join(of, turn, number + 1, held);
            return;
        }
    }
}

static bool open_run(run *of)
{
    of->places = ffm_new_pages(of->ways.count * TURNS * sizeof *of->places);
    of->states = ffm_new_pages((STATES + 1) * sizeof *of->states);
    of->waiting = ffm_new_pages(STATES * sizeof *of->waiting);
    return of->places != NULL && of->states != NULL && of->waiting != NULL;
}

static void close_run(run *of)
{
    if (of->places != NULL)
        munmap(of->places, of->ways.count * TURNS * sizeof *of->places);
    if (of->states != NULL)
        munmap(of->states, (STATES + 1) * sizeof *of->states);
    if (of->waiting != NULL)
        munmap(of->waiting, STATES * sizeof *of->waiting);
}

bool ffm_parameter_values(uint32_t architecture, const uint8_t *code, size_t bytes, const ffm_given_values *given,
                          ffm_values_read *result)
{
    run of = {.bank = {.architecture = architecture, .given = given, .result = result}};
    memset(result, 0, sizeof *result);
    if (architecture >= FFM_BLACKWELL || !ffm_ways_open(&of.ways, architecture, code, bytes))
        return false;
    ffm_barriers_follow(&of.ways);
    of.bank.failed = of.ways.count > UINT32_MAX / TURNS || !open_run(&of);
    if (!of.bank.failed) {
        ffm_held *first = &of.states[STATES].held;
        ffm_held_forget(first, 0);
        join(&of, 0, 0, first);
    }
    while (!of.bank.failed && of.waits > 0)
        follow(&of, of.waiting[--of.waits]);
    close_run(&of);
    ffm_ways_close(&of.ways);
    return !of.bank.failed;
}
