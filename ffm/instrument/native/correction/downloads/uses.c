#include "uses.h"

#include <string.h>

enum { USES = 256, UNLISTED = USES };

typedef struct {
    bool taken;
    uint64_t start, end; /* an end of 0: nothing */
} use;

static struct {
    use list[USES];
    uint32_t highest;  /* one more than the last place that was ever taken */
    uint32_t unlisted; /* those for which there was no room */
} uses;

static uint32_t place_for(uint64_t start, uint64_t end)
{
    for (uint32_t i = 0; i < USES; i++) {
        use *at = &uses.list[i];
        if (__atomic_load_n(&at->taken, __ATOMIC_RELAXED) || __atomic_test_and_set(&at->taken, __ATOMIC_ACQUIRE))
            continue;
        __atomic_store_n(&at->start, start, __ATOMIC_RELAXED);
        __atomic_store_n(&at->end, end, __ATOMIC_RELAXED);
        uint32_t highest = __atomic_load_n(&uses.highest, __ATOMIC_RELAXED);
        while (highest <= i &&
               !__atomic_compare_exchange_n(&uses.highest, &highest, i + 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            ;
        return i;
    }
    __atomic_add_fetch(&uses.unlisted, 1, __ATOMIC_RELAXED);
    return UNLISTED;
}

uint32_t ffm_uses_begin(uint64_t start, uint64_t end)
{
    const uint32_t place = place_for(start, end);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return place;
}

void ffm_uses_end(uint32_t place)
{
    if (place == UNLISTED) {
        __atomic_sub_fetch(&uses.unlisted, 1, __ATOMIC_RELEASE);
        return;
    }
    __atomic_store_n(&uses.list[place].end, 0, __ATOMIC_RELAXED);
    __atomic_clear(&uses.list[place].taken, __ATOMIC_RELEASE);
}

bool ffm_uses_any(uint64_t first, uint64_t last)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    bool any = __atomic_load_n(&uses.unlisted, __ATOMIC_RELAXED) > 0;
    const uint32_t highest = __atomic_load_n(&uses.highest, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < highest && !any; i++)
        any = __atomic_load_n(&uses.list[i].start, __ATOMIC_RELAXED) < last &&
              first < __atomic_load_n(&uses.list[i].end, __ATOMIC_RELAXED);
    return any;
}

void ffm_uses_after_fork(void)
{
    memset(&uses, 0, sizeof uses);
}
