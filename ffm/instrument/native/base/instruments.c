#include "instruments.h"

enum { CAPACITY = 32 };

static struct {
    uint32_t count;
    struct {
        uint64_t start, end;
    } code[CAPACITY];
} instruments;

void ffm_instruments_note(uint64_t start, uint64_t bytes)
{
    if (instruments.count == CAPACITY || ffm_instruments_hold(start))
        return; /* a forked child receives it again */
    instruments.code[instruments.count].start = start;
    instruments.code[instruments.count].end = start + bytes;
    __atomic_store_n(&instruments.count, instruments.count + 1, __ATOMIC_RELEASE);
}

bool ffm_instruments_hold(uint64_t address)
{
    for (uint32_t i = 0; i < __atomic_load_n(&instruments.count, __ATOMIC_ACQUIRE); i++)
        if (instruments.code[i].start <= address && address < instruments.code[i].end)
            return true;
    return false;
}
