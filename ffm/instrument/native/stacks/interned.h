/* The stacks seen in a process. They are found by the hash of their words, without a lock, and added under the
 * caller's. */
#ifndef FFM_INTERNED_H
#define FFM_INTERNED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "records.h"

/* 128 bits of hash over the words and whatever else tells stacks apart. With a million stacks, the chance that two of
 * them agree is less than 10^-26. */
typedef struct {
    uint64_t low, high;
} ffm_stack_hash;

/* A stack as it was captured. */
typedef struct {
    const uint64_t *words; /* the return addresses, innermost first, and after them the words of the Python frames */
    uint32_t depth, python_words;
    const char *function; /* that is called from there, or NULL; names are compared by their addresses */
} ffm_captured_stack;

typedef struct {
    ffm_stack_hash hash;
    const char *function;  /* as in ffm_captured_stack */
    uint32_t inner, outer; /* chains of its frames, as in ffm_stack */
    uint32_t number;
    uint32_t generation;   /* of the list of modules when it was found (modules.h): later, addresses may mean others */
    uint16_t depth;        /* native frames: the first words */
    uint16_t python_words; /* the words after them */
    bool kept;             /* whether the words are here: only then can it be among the recent stacks */
    uint8_t key[FFM_KEY_BYTES];
    uint64_t words[];
} ffm_interned;

/* A zeroed table is empty. It grows as stacks are added. Whoever searches it meanwhile finds what was there before. */
typedef struct {
    struct ffm_interned_slots *slots;
    uint32_t used;
} ffm_interned_table;

/* The hash of a stack that was captured while the list of modules had that generation. */
ffm_stack_hash ffm_interned_hash(const ffm_captured_stack *captured, uint32_t generation);

ffm_interned *ffm_interned_find(const ffm_interned_table *table, ffm_stack_hash hash);

/* A stack with that key; only under the lock. */
ffm_interned *ffm_interned_find_key(const ffm_interned_table *table, const uint8_t *key);

/* Room for a stack that keeps `words` words. It stays for the life of the process. NULL if memory is short. */
ffm_interned *ffm_interned_allocate(size_t words);

/* Add a stack that is not there, to be found by its hash or by its key. Returns 0 if memory is short. */
int ffm_interned_add(ffm_interned_table *table, ffm_interned *stack);
int ffm_interned_add_by_key(ffm_interned_table *table, ffm_interned *stack);

/* The stacks that were found last, by their innermost frames: most calls come from a recent stack again, and then need
 * no hash. */
enum { FFM_RECENT_STACKS = 1 << 8 };
typedef struct {
    ffm_interned *places[FFM_RECENT_STACKS];
} ffm_recent_stacks;

/* The stack that was captured, if it is among them, or NULL; and the place where it belongs. */
const ffm_interned *ffm_interned_recent(ffm_recent_stacks *recent, uint32_t generation,
                                        const ffm_captured_stack *captured, ffm_interned ***place);

/* In a forked child, in which nobody searches. */
void ffm_interned_clear(ffm_interned_table *table);

#endif
