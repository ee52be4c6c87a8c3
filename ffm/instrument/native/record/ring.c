#include "ring.h"

enum { ROOM = 1 << 16 };

static struct {
    ffm_ring_place places[ROOM]; /* the oldest is at `first` */
    uint32_t first, count;
} ring;

static ffm_ring_place *at(uint32_t turn)
{
    return &ring.places[(ring.first + turn) % ROOM];
}

void ffm_ring_add(const ffm_ring_place *place)
{
    if (ring.count < ROOM)
        *at(ring.count++) = *place;
}

bool ffm_ring_take(uint64_t bytes, uint64_t before, ffm_ring_place *place)
{
    uint32_t turn = 0;
    while (turn < ring.count && at(turn)->ended < before && at(turn)->capacity < bytes)
        turn++;
    if (turn == ring.count || at(turn)->ended >= before)
        return false;
    *place = *at(turn);
    for (; turn > 0; turn--)
        *at(turn) = *at(turn - 1);
    ring.first = (ring.first + 1) % ROOM;
    ring.count--;
    return true;
}

void ffm_ring_clear(void)
{
    ring.first = ring.count = 0;
}
