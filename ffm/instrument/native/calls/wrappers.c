/* One function per entry of the catalogue, which replaces the driver function.
 *
 * Each takes six register arguments, or sixteen words if the function has more than six: all driver functions in the
 * catalogue take only integers and pointers, which the System V calling convention passes in the same way. */
#include "wrappers.h"

#include "catalogue.h"

_Static_assert(FFM_LARGEST_ARITY <= FFM_MAX_ARGUMENTS, "a function has more arguments than its wrapper passes on");

typedef uint64_t word;

static ffm_call_handler handler;

void ffm_wrappers_lead_to(ffm_call_handler chosen)
{
    handler = chosen;
}

#define NARROW(index)                                                                                                  \
    static word narrow_##index(word a, word b, word c, word d, word e, word f)                                         \
    {                                                                                                                  \
        const word arguments[6] = {a, b, c, d, e, f};                                                                  \
        return handler(index, arguments, __builtin_frame_address(0));                                                  \
    }

#define WIDE(index)                                                                                                    \
    static word wide_##index(word a, word b, word c, word d, word e, word f, word g, word h, word i, word j, word k,   \
                             word l, word m, word n, word o, word p)                                                   \
    {                                                                                                                  \
        const word arguments[FFM_MAX_ARGUMENTS] = {a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p};                    \
        return handler(index, arguments, __builtin_frame_address(0));                                                  \
    }

#define FFM_FUNCTION(index, name, arity, ...) __attribute__((unused)) NARROW(index) __attribute__((unused)) WIDE(index)
#include "catalogue.inc"
#undef FFM_FUNCTION

typedef word (*narrow_function)(word, word, word, word, word, word);

static void *const wrappers[FFM_FUNCTION_COUNT] = {
#define FFM_FUNCTION(index, name, arity, ...) [index] = (arity) > 6 ? (void *)wide_##index : (void *)narrow_##index,
#include "catalogue.inc"
#undef FFM_FUNCTION
};

void *ffm_wrapper(uint32_t index)
{
    return index < FFM_FUNCTION_COUNT ? wrappers[index] : 0;
}
