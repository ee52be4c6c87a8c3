/* The driver's functions as they are without their hooks. */
#ifndef FFM_BINDINGS_H
#define FFM_BINDINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "catalogue.h"

/* The functions without their hooks, by index; NULL if a function is not hooked. */
extern void *ffm_call_originals[FFM_FUNCTION_COUNT];

static inline void *ffm_call_original(uint32_t index)
{
    return __atomic_load_n(&ffm_call_originals[index], __ATOMIC_ACQUIRE);
}

/* The same for a call that ffm makes itself, as the catalogue's `own_calls` name it: the first form that is hooked,
 * with the thread's own default stream or the common one. NULL if the driver has none. */
void *ffm_own_call(enum FfmOwnCall purpose, bool per_thread_stream);

/* Set where the function was, and the code that runs it without the hook. */
void ffm_call_bind(uint32_t index, const void *address, void *original);

/* The function that was at the address; FFM_FUNCTION_COUNT if none is bound there. */
uint32_t ffm_call_at(const void *address);

/* Run the function without its hook. `a` has six words, or FFM_MAX_ARGUMENTS if it takes more than six. */
static inline uint64_t ffm_call_forward(uint32_t index, const uint64_t *a)
{
    typedef uint64_t word;
    typedef word (*narrow_function)(word, word, word, word, word, word);
    typedef word (*wide_function)(word, word, word, word, word, word, word, word, word, word, word, word, word, word,
                                  word, word);
    void *original;
    /* Another thread can arrive between the patch and the bind that follows it. */
    while (__builtin_expect((original = ffm_call_original(index)) == NULL, 0))
        __builtin_ia32_pause();
    if (ffm_catalogue[index].arity > 6)
        return ((wide_function)original)(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11],
                                         a[12], a[13], a[14], a[15]);
    return ((narrow_function)original)(a[0], a[1], a[2], a[3], a[4], a[5]);
}

#endif
