#include "clocks.h"

#include "clock.h"

typedef uint64_t word;
typedef word (*function)(word, word);

static ffm_clock_reader *told;

void ffm_clocks_tell(ffm_clock_reader *reader)
{
    __atomic_store_n(&told, reader, __ATOMIC_RELEASE);
}

static void tell(const void *caller)
{
    ffm_clock_reader *reader = __atomic_load_n(&told, __ATOMIC_ACQUIRE);
    if (reader != NULL)
        reader(caller, NULL);
}

/* The collector's own reads go past both replacements; the kernel's function, if it is replaced at all, is replaced
 * later. */
static void read_past(void *original)
{
    __atomic_store_n(&ffm_clock, (int (*)(clockid_t, struct timespec *))(uintptr_t)original, __ATOMIC_RELEASE);
}

/* Functions of the C library, to which others lead (timespec_get, and gettimeofday through the gate), and the kernel's
 * code in the process, which programs can call directly. Reads by system calls are seen as system calls. */
#define CLOCKS(X)                                                                                                      \
    X(clock_gettime, read_past)                                                                                        \
    X(clock, NULL)                                                                                                     \
    X(__vdso_clock_gettime, read_past)                                                                                 \
    X(__vdso_gettimeofday, NULL)                                                                                       \
    X(__vdso_time, NULL)

#define PLACE(name, bound_by) PLACE_##name,
enum { CLOCKS(PLACE) };

static __thread bool within __attribute__((tls_model("initial-exec"))); /* one of these, which may call another */

#define WRAPPER(name, bound_by)                                                                                        \
    static word wrap_##name(word p, word q)                                                                            \
    {                                                                                                                  \
        const bool outer = !within;                                                                                    \
        if (outer)                                                                                                     \
            tell(__builtin_return_address(0));                                                                         \
        within = true;                                                                                                 \
        const word result = ((function)ffm_followed_original(&ffm_clocks[PLACE_##name]))(p, q);                        \
        within = !outer;                                                                                               \
        return result;                                                                                                 \
    }
CLOCKS(WRAPPER)

#define ROW(name, bound_by) {FFM_FOLLOWED(name), .bound = bound_by},
ffm_followed ffm_clocks[] = {CLOCKS(ROW){.name = NULL}};

bool ffm_clocks_are_followed(void)
{
    return __atomic_load_n(&ffm_clocks[PLACE_clock_gettime].original, __ATOMIC_ACQUIRE) != NULL;
}
