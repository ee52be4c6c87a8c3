#include "parameter_flow.h"

#include <string.h>
#include <sys/mman.h>

#include "machine_encoding.h"
#include "machine_flow.h"
#include "machine_ways.h"
#include "new_pages.h"

/* Before each instruction: what carries the half, and whether control may come there. */
typedef struct {
    ffm_carriers carriers;
    bool reached, changed;
} state;

typedef struct {
    ffm_ways ways;
    uint32_t place;
    state *before;
    size_t next; /* the first instruction whose state changed may be there or behind it */
} flow;

static void join(flow *of, size_t number, const ffm_carriers *carriers)
{
    if (number >= of->ways.count)
        return;
    state *at = &of->before[number];
    bool changed = !at->reached;
    for (int i = 0; i < 4; i++) {
        changed |= (carriers->general[i] & ~at->carriers.general[i]) != 0;
        changed |= (carriers->uniform[i] & ~at->carriers.uniform[i]) != 0;
        at->carriers.general[i] |= carriers->general[i];
        at->carriers.uniform[i] |= carriers->uniform[i];
    }
    at->reached = true;
    at->changed |= changed;
    if (changed && number < of->next)
        of->next = number;
}

/* What carries the half where a way goes on. */
typedef struct {
    flow *of;
    const ffm_carriers *carriers;
} way;

static void join_at(void *context, size_t number)
{
    const way *from = context;
    join(from->of, number, from->carriers);
}

/* Whether all threads leave there. Two predicates can say that some do not, and bits 32 and 33 that it depends on
 * whether they are together. */
static bool leaves(const uint64_t word[2])
{
    const uint32_t kind = ffm_kind(word);
    const bool always = (word[0] >> 12 & 0xf) == FFM_ALWAYS && (word[1] >> (87 - 64) & 0xf) == FFM_ALWAYS;
    return always && (kind == FFM_EXIT || kind == FFM_RETURN || (kind == FFM_BRANCH && (word[0] >> 32 & 3) == 0));
}

/* Returns whether the half is used. */
static bool step(flow *of, size_t number)
{
    uint64_t word[2];
    ffm_carriers carriers = of->before[number].carriers;
    of->before[number].changed = false;
    ffm_ways_instruction(&of->ways, number, word);
    if (ffm_instruction_uses(of->ways.architecture, word, of->place, &carriers))
        return true;
    const uint32_t kind = ffm_kind(word);
    way from = {of, &carriers};
    if (kind == FFM_BRANCH || kind == FFM_BRANCH_UNIFORM || kind == FFM_CALL)
        join(of, (size_t)ffm_ways_target(&of->ways, word, number), &carriers);
    if (kind == FFM_RETURN)
        ffm_ways_returns(&of->ways, join_at, &from);
    if (kind == FFM_MEET)
        ffm_ways_meets(&of->ways, number, join_at, &from);
    if (!leaves(word))
        join(of, number + 1, &carriers);
    return false;
}

bool ffm_may_be_address(uint32_t architecture, const uint8_t *code, size_t bytes, uint32_t place)
{
    flow of = {.place = place};
    bool used = !ffm_ways_open(&of.ways, architecture, code, bytes);
    const size_t room = of.ways.count * sizeof *of.before;
    of.before = ffm_new_pages(room);
    if (of.ways.count == 0 || of.before == NULL)
        return true;
    const ffm_carriers none = {{0}, {0}};
    join(&of, 0, &none);
    for (of.next = 0; !used && of.next < of.ways.count;) {
        const size_t number = of.next++;
        if (of.before[number].changed)
            used = step(&of, number);
    }
    munmap(of.before, room);
    return used;
}
