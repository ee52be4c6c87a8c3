#include "clock.h"

#include <stddef.h>

#include "clock_reads.h"
#include "collector.h"

typedef uint64_t word;
typedef word (*function)(word, word);

/* Others end in these: timespec_get, and gettimeofday through the gate. System calls are seen as such. */
#define CLOCKS(X)                                                                                                      \
    X(clock_gettime)                                                                                                   \
    X(clock)

#define PLACE(name) PLACE_##name,
enum { CLOCKS(PLACE) PLACES };

static void *originals[PLACES];

static function original_at(uint32_t place)
{
    void *original;
    /* Another thread can arrive between the patch and the bind that follows it. */
    while ((original = __atomic_load_n(&originals[place], __ATOMIC_ACQUIRE)) == NULL)
        __builtin_ia32_pause();
    return (function)(uintptr_t)original;
}

#define WRAPPER(name)                                                                                                  \
    static word wrap_##name(word p, word q)                                                                            \
    {                                                                                                                  \
        ffm_clock_read(__builtin_return_address(0));                                                                   \
        return original_at(PLACE_##name)(p, q);                                                                        \
    }
CLOCKS(WRAPPER)

#define ROW(name) {#name, (void *)(uintptr_t)wrap_##name},
static const struct {
    const char *name;
    void *wrapper;
} clocks[PLACES] = {CLOCKS(ROW)};

const char *ffm_collector_clock_name(uint32_t place)
{
    return place < PLACES ? clocks[place].name : NULL;
}

void *ffm_collector_clock_wrapper(uint32_t place)
{
    /* A forked child has its parent's. */
    return place < PLACES && originals[place] == NULL ? clocks[place].wrapper : NULL;
}

void ffm_collector_clock_bind(uint32_t place, void *original)
{
    if (place >= PLACES)
        return;
    __atomic_store_n(&originals[place], original, __ATOMIC_RELEASE);
    if (place == PLACE_clock_gettime)
        __atomic_store_n(&ffm_clock, (int (*)(clockid_t, struct timespec *))(uintptr_t)original, __ATOMIC_RELEASE);
}
