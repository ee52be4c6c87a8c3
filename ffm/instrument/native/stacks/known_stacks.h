/* Call stacks of a thread, recognised by their return addresses, each in its place on the stack. That takes
 * nanoseconds, where capturing a stack takes a microsecond. */
#ifndef FFM_KNOWN_STACKS_H
#define FFM_KNOWN_STACKS_H

#include <stdbool.h>
#include <stdint.h>

#include "stacks.h"

/* How many stacks are known at a time, and by how many inner frames at most. */
enum { FFM_KNOWN_STACKS = 16, FFM_KNOWN_RETURNS = 16 };

typedef struct {
    const void *caller; /* NULL: none */
    uint64_t base;      /* an address below its frames */
    uint64_t modules;   /* the generation of modules to which the addresses belong */
    uint32_t stack;
    uint32_t count;
    struct {
        uint64_t place, address;
    } returns[FFM_KNOWN_RETURNS];
} ffm_known_stack;

typedef struct {
    ffm_known_stack stacks[FFM_KNOWN_STACKS];
    uint64_t met[FFM_KNOWN_STACKS]; /* hashes of callers with their bases */
    uint32_t added;
} ffm_known_stacks;

/* Whether the frames from `caller` on, which lie above `base`, are those of a known stack; then sets *stack. */
bool ffm_known_stack_find(const ffm_known_stacks *known, const void *caller, uint64_t base, uint32_t *stack);

/* Whether the same caller and base were met before, as far as is remembered. Adding a stack takes as long as capturing
 * it, so only those that occur again are worth adding. */
bool ffm_known_stack_met(ffm_known_stacks *known, const void *caller, uint64_t base);

/* Remember the stack that was captured just now. `from` are the registers at `caller`, or NULL if `caller` called the
 * calling functions. Stacks with functions of an interpreter are not remembered: addresses do not tell them apart. */
void ffm_known_stack_add(ffm_known_stacks *known, const void *caller, uint64_t base, const ffm_registers *from,
                         uint32_t stack);

#endif
