#include "planned.h"

#include <string.h>

#include "records.h"

enum { UNSEEN = 0, ABSENT = 1, FIRST = 2 };

static const uint8_t *key_at(const ffm_planned *planned, uint32_t place)
{
    return planned->records + place * planned->stride;
}

bool ffm_planned_open(ffm_planned *planned, const void *records, size_t stride, uint32_t count)
{
    planned->records = records;
    planned->stride = stride;
    planned->count = count;
    for (uint32_t place = 1; place < count; place++)
        if (memcmp(key_at(planned, place - 1), key_at(planned, place), FFM_KEY_BYTES) > 0)
            return false;
    return true;
}

static uint32_t find(const ffm_planned *planned, const uint8_t *key)
{
    uint32_t low = 0, high = planned->count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (memcmp(key_at(planned, middle), key, FFM_KEY_BYTES) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    const bool found = low < planned->count && memcmp(key_at(planned, low), key, FFM_KEY_BYTES) == 0;
    return found ? FIRST + low : ABSENT;
}

uint32_t ffm_planned_place(ffm_planned *planned, uint32_t stack)
{
    uint32_t known = __atomic_load_n(&planned->known[stack], __ATOMIC_RELAXED);
    if (__builtin_expect(known == UNSEEN, 0)) {
        known = find(planned, ffm_stack_key(stack));
        __atomic_store_n(&planned->known[stack], known, __ATOMIC_RELAXED);
    }
    return known == ABSENT ? FFM_NOT_PLANNED : known - FIRST;
}

void ffm_planned_after_fork(ffm_planned *planned)
{
    memset(planned->known, 0, sizeof planned->known);
}
