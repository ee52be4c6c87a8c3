#include "unsettled.h"

/* Two rings through the places: each begins and ends at a place of its own. The links of a place that is on none are
 * zero: they count from 1. */
enum { LIST = FFM_UNSETTLED_ROOM, TAKEN, LINKS };

static struct {
    uint32_t before, after; /* plus 1 */
} links[LINKS] = {[LIST] = {LIST + 1, LIST + 1}, [TAKEN] = {TAKEN + 1, TAKEN + 1}};

static bool is_on(uint32_t place)
{
    return links[place].after != 0;
}

static void put_after(uint32_t at, uint32_t place)
{
    const uint32_t next = links[at].after - 1;
    links[place].before = at + 1;
    links[place].after = next + 1;
    links[at].after = place + 1;
    links[next].before = place + 1;
}

void ffm_unsettled_add(uint32_t place)
{
    if (!is_on(place))
        put_after(LIST, place);
}

void ffm_unsettled_drop(uint32_t place)
{
    if (!is_on(place))
        return;
    links[links[place].before - 1].after = links[place].after;
    links[links[place].after - 1].before = links[place].before;
    links[place].before = links[place].after = 0;
}

void ffm_unsettled_moved(uint32_t from, uint32_t to)
{
    if (!is_on(from))
        return;
    const uint32_t before = links[from].before - 1;
    ffm_unsettled_drop(from);
    put_after(before, to);
}

uint32_t ffm_unsettled_take(void)
{
    const uint32_t place = links[LIST].after - 1;
    if (place == LIST)
        return FFM_NO_PLACE;
    ffm_unsettled_drop(place);
    put_after(links[TAKEN].before - 1, place);
    return place;
}

void ffm_unsettled_end(void)
{
    const uint32_t first = links[TAKEN].after - 1, last = links[TAKEN].before - 1;
    if (first == TAKEN)
        return;
    /* What was added meanwhile is newer. */
    const uint32_t before = links[LIST].before - 1;
    links[before].after = first + 1;
    links[first].before = before + 1;
    links[last].after = LIST + 1;
    links[LIST].before = last + 1;
    links[TAKEN].before = links[TAKEN].after = TAKEN + 1;
}

uint32_t ffm_unsettled_after(uint32_t place)
{
    const uint32_t next = links[place == FFM_NO_PLACE ? LIST : place].after - 1;
    return next == LIST ? FFM_NO_PLACE : next;
}

void ffm_unsettled_reset(uint32_t count)
{
    for (uint32_t i = 0; i < LINKS; i++)
        links[i].before = links[i].after = 0;
    links[LIST].before = links[LIST].after = LIST + 1;
    links[TAKEN].before = links[TAKEN].after = TAKEN + 1;
    for (uint32_t place = 0; place < count; place++)
        ffm_unsettled_add(place);
}
