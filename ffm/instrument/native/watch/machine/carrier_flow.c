#include "carrier_flow.h"

#include <string.h>
#include <sys/mman.h>

#include "machine_encoding.h"
#include "new_pages.h"

enum { MOST_STATES = 1 << 18, BITS = 64 };

static size_t states(const ffm_carrier_flow *flow)
{
    return flow->ways->count * flow->contexts;
}

static size_t words(const ffm_carrier_flow *flow)
{
    return (states(flow) + BITS - 1) / BITS;
}

bool ffm_carrier_flow_open(ffm_carrier_flow *flow, const ffm_ways *ways, ffm_carried uses, uint32_t place, bool apart)
{
    *flow = (ffm_carrier_flow){.ways = ways, .uses = uses, .place = place, .contexts = 1};
    if (apart && ways->count <= MOST_STATES / (ways->called + 1))
        flow->contexts += ways->called;
    if (ways->count == 0)
        return false;
    flow->before = ffm_new_pages(states(flow) * sizeof *flow->before);
    flow->changed = ffm_new_pages(words(flow) * sizeof *flow->changed);
    flow->next = words(flow);
    if (flow->before != NULL && flow->changed != NULL)
        return true;
    ffm_carrier_flow_close(flow);
    return false;
}

void ffm_carrier_flow_close(ffm_carrier_flow *flow)
{
    if (flow->before != NULL)
        munmap(flow->before, states(flow) * sizeof *flow->before);
    if (flow->changed != NULL)
        munmap(flow->changed, words(flow) * sizeof *flow->changed);
}

void ffm_carrier_flow_clear(ffm_carrier_flow *flow)
{
    memset(flow->before, 0, states(flow) * sizeof *flow->before);
    memset(flow->changed, 0, words(flow) * sizeof *flow->changed);
    memset(flow->callers, 0, sizeof flow->callers);
    flow->next = words(flow);
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

static void change(ffm_carrier_flow *flow, size_t place)
{
    flow->changed[place / BITS] |= 1ULL << place % BITS;
    if (place / BITS < flow->next)
        flow->next = place / BITS;
}

static void enter(ffm_carrier_flow *flow, uint32_t context, size_t number, const ffm_carriers *carriers)
{
    if (number >= flow->ways->count)
        return;
    const size_t place = context * flow->ways->count + number;
    ffm_carriers_before *at = &flow->before[place];
    bool changed = !at->reached;
    changed |= add(at->carriers.general, carriers->general);
    changed |= add(at->carriers.uniform, carriers->uniform);
    changed |= (carriers->barriers & ~at->carriers.barriers) != 0;
    at->carriers.barriers |= carriers->barriers;
    at->reached = true;
    if (changed)
        change(flow, place);
}

void ffm_carrier_flow_enter(ffm_carrier_flow *flow, size_t number, const ffm_carriers *carriers)
{
    enter(flow, 0, number, carriers);
}

/* What is carried to where a path goes on. */
typedef struct {
    ffm_carrier_flow *flow;
    uint32_t context;
    const ffm_carriers *carriers;
} way;

static void enter_at(void *context, size_t number)
{
    const way *from = context;
    enter(from->flow, from->context, number, from->carriers);
}

/* A new caller also gets what was known before of where a function returns. */
static void returns_again(ffm_carrier_flow *flow, uint32_t context)
{
    for (size_t number = 0; number < flow->ways->count; number++) {
        uint64_t word[2];
        const size_t place = context * flow->ways->count + number;
        ffm_ways_instruction(flow->ways, number, word);
        if (ffm_kind(word) == FFM_RETURN && flow->before[place].reached)
            change(flow, place);
    }
}

static void call(const way *from, size_t number, size_t target)
{
    uint32_t context = from->context;
    if (from->flow->contexts > 1) {
        context = 1;
        while (from->flow->ways->calls[context - 1] != number)
            context++;
        uint64_t *callers = &from->flow->callers[context], bit = 1ULL << from->context;
        if ((*callers & bit) == 0) {
            *callers |= bit;
            returns_again(from->flow, context);
        }
    }
    enter(from->flow, context, target, from->carriers);
}

static void give_back(way *from)
{
    const ffm_carrier_flow *flow = from->flow;
    if (from->context == 0)
        ffm_ways_returns(flow->ways, enter_at, from);
    for (uint32_t caller = 0; from->context != 0 && caller < flow->contexts; caller++)
        if ((flow->callers[from->context] >> caller & 1) != 0)
            enter(from->flow, caller, flow->ways->calls[from->context - 1] + 1, from->carriers);
}

/* Whether all threads leave there. Two predicates can say that some do not; bits 32 and 33, that it depends on whether
 * they are together. */
static bool leaves(const uint64_t word[2])
{
    const uint32_t kind = ffm_kind(word);
    const bool always = (word[0] >> 12 & 0xf) == FFM_ALWAYS && (word[1] >> (87 - 64) & 0xf) == FFM_ALWAYS;
    return always && (kind == FFM_EXIT || kind == FFM_RETURN || (kind == FFM_BRANCH && (word[0] >> 32 & 3) == 0));
}

/* Returns whether it is used. */
static bool step(ffm_carrier_flow *flow, size_t place)
{
    uint64_t word[2];
    const size_t number = place % flow->ways->count;
    ffm_carriers carriers = flow->before[place].carriers;
    ffm_ways_instruction(flow->ways, number, word);
    if (flow->uses(flow->ways->architecture, word, flow->place, &carriers))
        return true;
    const uint32_t kind = ffm_kind(word);
    way from = {flow, (uint32_t)(place / flow->ways->count), &carriers};
    if (kind == FFM_BRANCH || kind == FFM_BRANCH_UNIFORM || ffm_begins_collective(word))
        enter_at(&from, (size_t)ffm_ways_target(flow->ways, word, number));
    if (kind == FFM_CALL)
        call(&from, number, (size_t)ffm_ways_target(flow->ways, word, number));
    if (kind == FFM_RETURN)
        give_back(&from);
    if (kind == FFM_MEET || kind == FFM_END_COLLECTIVE)
        ffm_ways_meets(flow->ways, number, enter_at, &from);
    if (!leaves(word))
        enter_at(&from, number + 1);
    return false;
}

bool ffm_carrier_flow_uses(ffm_carrier_flow *flow)
{
    while (flow->next < words(flow)) {
        uint64_t *bits = &flow->changed[flow->next];
        if (*bits == 0) {
            flow->next++;
            continue;
        }
        const size_t place = flow->next * BITS + (size_t)__builtin_ctzll(*bits);
        *bits &= *bits - 1;
        if (step(flow, place))
            return true;
    }
    return false;
}
