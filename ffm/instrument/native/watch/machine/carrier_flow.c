#include "carrier_flow.h"

#include <string.h>
#include <sys/mman.h>

#include "machine_encoding.h"
#include "new_pages.h"

static size_t room(const ffm_carrier_flow *flow)
{
    return flow->ways->count * sizeof *flow->before;
}

bool ffm_carrier_flow_open(ffm_carrier_flow *flow, const ffm_ways *ways, ffm_carried uses, uint32_t place)
{
    *flow = (ffm_carrier_flow){.ways = ways, .uses = uses, .place = place};
    if (ways->count != 0)
        flow->before = ffm_new_pages(room(flow));
    flow->next = ways->count;
    return flow->before != NULL;
}

void ffm_carrier_flow_close(ffm_carrier_flow *flow)
{
    munmap(flow->before, room(flow));
}

void ffm_carrier_flow_clear(ffm_carrier_flow *flow)
{
    memset(flow->before, 0, room(flow));
    flow->next = flow->ways->count;
}

static bool add(uint64_t *to, const uint64_t *from)
{
    bool changed = false;
    for (int i = 0; i < 4; i++) {
        changed |= (from[i] & ~to[i]) != 0;
        to[i] |= from[i];
    }
    return changed;
}

void ffm_carrier_flow_enter(ffm_carrier_flow *flow, size_t number, const ffm_carriers *carriers)
{
    if (number >= flow->ways->count)
        return;
    ffm_carriers_before *at = &flow->before[number];
    bool changed = !at->reached;
    changed |= add(at->carriers.general, carriers->general);
    changed |= add(at->carriers.uniform, carriers->uniform);
    changed |= (carriers->barriers & ~at->carriers.barriers) != 0;
    at->carriers.barriers |= carriers->barriers;
    at->reached = true;
    at->changed |= changed;
    if (changed && number < flow->next)
        flow->next = number;
}

/* What is carried where a way goes on. */
typedef struct {
    ffm_carrier_flow *flow;
    const ffm_carriers *carriers;
} way;

static void enter_at(void *context, size_t number)
{
    const way *from = context;
    ffm_carrier_flow_enter(from->flow, number, from->carriers);
}

/* Whether all threads leave there. Two predicates can say that some do not, and bits 32 and 33 that it depends on
 * whether they are together. */
static bool leaves(const uint64_t word[2])
{
    const uint32_t kind = ffm_kind(word);
    const bool always = (word[0] >> 12 & 0xf) == FFM_ALWAYS && (word[1] >> (87 - 64) & 0xf) == FFM_ALWAYS;
    return always && (kind == FFM_EXIT || kind == FFM_RETURN || (kind == FFM_BRANCH && (word[0] >> 32 & 3) == 0));
}

/* Returns whether it is used. */
static bool step(ffm_carrier_flow *flow, size_t number)
{
    uint64_t word[2];
    ffm_carriers carriers = flow->before[number].carriers;
    flow->before[number].changed = false;
    ffm_ways_instruction(flow->ways, number, word);
    if (flow->uses(flow->ways->architecture, word, flow->place, &carriers))
        return true;
    const uint32_t kind = ffm_kind(word);
    way from = {flow, &carriers};
    if (kind == FFM_BRANCH || kind == FFM_BRANCH_UNIFORM || kind == FFM_CALL || ffm_begins_collective(word))
        ffm_carrier_flow_enter(flow, (size_t)ffm_ways_target(flow->ways, word, number), &carriers);
    if (kind == FFM_RETURN)
        ffm_ways_returns(flow->ways, enter_at, &from);
    if (kind == FFM_MEET || kind == FFM_END_COLLECTIVE)
        ffm_ways_meets(flow->ways, number, enter_at, &from);
    if (!leaves(word))
        ffm_carrier_flow_enter(flow, number + 1, &carriers);
    return false;
}

bool ffm_carrier_flow_uses(ffm_carrier_flow *flow)
{
    while (flow->next < flow->ways->count) {
        const size_t number = flow->next++;
        if (flow->before[number].changed && step(flow, number))
            return true;
    }
    return false;
}
