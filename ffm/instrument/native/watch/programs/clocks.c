#include "clocks.h"

#include "clock.h"
#include "clock_reads.h"

typedef uint64_t word;
typedef word (*function)(word, word);

/* The collector's own reads: past both, if the kernel's is replaced too, which comes later. */
static void read_past(void *original)
{
    __atomic_store_n(&ffm_clock, (int (*)(clockid_t, struct timespec *))(uintptr_t)original, __ATOMIC_RELEASE);
}

/* Of the C library, in which others end (timespec_get, and gettimeofday through the gate); and the kernel's code in the
 * process, which programs can call directly. System calls are seen as such. */
#define CLOCKS(X)                                                                                                      \
    X(clock_gettime, read_past)                                                                                        \
    X(clock, NULL)                                                                                                     \
    X(__vdso_clock_gettime, read_past)                                                                                 \
    X(__vdso_gettimeofday, NULL)                                                                                       \
    X(__vdso_time, NULL)

#define PLACE(name, told) PLACE_##name,
enum { CLOCKS(PLACE) };

static __thread bool within __attribute__((tls_model("initial-exec"))); /* one of these, which may call another */

#define WRAPPER(name, told)                                                                                            \
    static word wrap_##name(word p, word q)                                                                            \
    {                                                                                                                  \
        const bool outer = !within;                                                                                    \
        if (outer)                                                                                                     \
            ffm_clock_read(__builtin_return_address(0), NULL);                                                         \
        within = true;                                                                                                 \
        const word result = ((function)ffm_followed_original(&ffm_clocks[PLACE_##name]))(p, q);                        \
        within = !outer;                                                                                               \
        return result;                                                                                                 \
    }
CLOCKS(WRAPPER)

#define ROW(name, told) {FFM_FOLLOWED(name), .bound = told},
ffm_followed ffm_clocks[] = {CLOCKS(ROW){.name = NULL}};
