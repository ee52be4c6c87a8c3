#include "machine_barriers.h"

#include <string.h>
#include <sys/mman.h>

#include "carrier_flow.h"
#include "machine_encoding.h"
#include "new_pages.h"

/* Beyond all banks: what is followed is not a parameter. */
enum { NO_PLACE = 1 << 20 };

/* Whether a barrier gets into memory, from where it may be restored: compilers keep it in the thread's own memory
 * (STL). A saved barrier in a register may also be calculated with, and stored elsewhere. */
static bool is_spilled(uint32_t architecture, const uint64_t word[2], uint32_t place, ffm_carriers *carriers)
{
    enum { STORE_OWN = 0x387 };
    return ffm_instruction_uses(architecture, word, place, carriers) && ffm_kind(word) == STORE_OWN;
}

/* Note where threads meet by the barrier that is carried. Returns whether that was not known. */
static bool note(const ffm_carrier_flow *flow, ffm_ways *ways, uint32_t parting)
{
    bool found = false;
    for (size_t number = 0; number < ways->count; number++) {
        uint64_t word[2];
        if (flow->before[number].carriers.barriers == 0)
            continue;
        ffm_ways_instruction(ways, number, word);
        if (ffm_kind(word) != FFM_MEET || (flow->before[number].carriers.barriers >> ffm_barrier(word) & 1) == 0)
            continue;
        uint64_t *bits = &ways->met_by[number].bits[parting / 64], bit = 1ULL << parting % 64;
        found |= (*bits & bit) == 0;
        *bits |= bit;
    }
    return found;
}

/* Follow the barriers of all partings. Returns whether they stay in registers. */
static bool follow(ffm_carrier_flow *flow, ffm_ways *ways, bool *found)
{
    *found = false;
    for (uint32_t parting = 0; parting < ways->by_barriers; parting++) {
        const ffm_parting *at = &ways->partings[parting];
        const ffm_carriers carriers = {{0}, {0}, (uint16_t)(1 << at->barrier)};
        ffm_carrier_flow_clear(flow);
        ffm_carrier_flow_enter(flow, at->number + 1, &carriers);
        if (ffm_carrier_flow_uses(flow))
            return false;
        *found |= note(flow, ways, parting);
    }
    return true;
}

/* Where threads meet by a barrier that is none of these, it may be any. */
static void open_others(ffm_ways *ways)
{
    const ffm_some_partings none = {{0}};
    for (size_t number = 0; number < ways->count; number++)
        if (memcmp(&ways->met_by[number], &none, sizeof none) == 0)
            memset(&ways->met_by[number], 0xff, sizeof none);
}

/* Where threads meet can lead to other places where they do. */
static bool follow_all(ffm_ways *ways)
{
    ffm_carrier_flow flow;
    if (!ffm_carrier_flow_open(&flow, ways, is_spilled, NO_PLACE, false))
        return false;
    bool found = true, stay = true;
    while (found && stay)
        stay = follow(&flow, ways, &found);
    ffm_carrier_flow_close(&flow);
    return stay;
}

void ffm_barriers_follow(ffm_ways *ways)
{
    if (!ways->restores || ways->by_barriers > FFM_PARTINGS_FOLLOWED)
        return;
    const size_t room = ways->count * sizeof *ways->met_by;
    ways->met_by = ffm_new_pages(room);
    if (ways->met_by == NULL)
        return;
    if (follow_all(ways)) {
        open_others(ways);
    } else {
        munmap(ways->met_by, room);
        ways->met_by = NULL;
    }
}
