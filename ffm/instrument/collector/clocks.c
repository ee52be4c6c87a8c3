#include "clocks.h"

#include <stdbool.h>
#include <stddef.h>

#include "clock.h"
#include "clock_reads.h"

typedef uint64_t word;
typedef word (*function)(word, word);

/* Of the C library, in which others end (timespec_get, and gettimeofday through the gate); and the kernel's code in the
 * process, which programs can call directly. System calls are seen as such. */
#define CLOCKS(X)                                                                                                      \
    X(clock_gettime)                                                                                                   \
    X(clock)                                                                                                           \
    X(__vdso_clock_gettime)                                                                                            \
    X(__vdso_gettimeofday)                                                                                             \
    X(__vdso_time)

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

static __thread bool within __attribute__((tls_model("initial-exec"))); /* one of these, which may call another */

#define WRAPPER(name)                                                                                                  \
    static word wrap_##name(word p, word q)                                                                            \
    {                                                                                                                  \
        const bool outer = !within;                                                                                    \
        if (outer)                                                                                                     \
            ffm_clock_read(__builtin_return_address(0), NULL);                                                         \
        within = true;                                                                                                 \
        const word result = original_at(PLACE_##name)(p, q);                                                           \
        within = !outer;                                                                                               \
        return result;                                                                                                 \
    }
CLOCKS(WRAPPER)

#define ROW(name) {#name, (void *)(uintptr_t)wrap_##name},
static const struct {
    const char *name;
    void *wrapper;
} clocks[PLACES] = {CLOCKS(ROW)};

const char *ffm_clocks_name(uint32_t place)
{
    return place < PLACES ? clocks[place].name : NULL;
}

void *ffm_clocks_wrapper(uint32_t place)
{
    /* A forked child has its parent's. */
    return originals[place] == NULL ? clocks[place].wrapper : NULL;
}

void ffm_clocks_bind(uint32_t place, void *original)
{
    __atomic_store_n(&originals[place], original, __ATOMIC_RELEASE);
    /* The collector's own reads: past both, if the kernel's is replaced too, which comes later. */
    if (place == PLACE_clock_gettime || place == PLACE___vdso_clock_gettime)
        __atomic_store_n(&ffm_clock, (int (*)(clockid_t, struct timespec *))(uintptr_t)original, __ATOMIC_RELEASE);
}
