/* The stacks that a process has shown: found by their words without a lock, added under the caller's. */
#ifndef FFM_INTERNED_H
#define FFM_INTERNED_H

#include <stddef.h>
#include <stdint.h>

#include "records.h"

/* Kept for exact comparison: two stacks are the same only if every frame agrees. */
typedef struct {
    uint64_t hash;
    uint32_t
        generation; /* of the list of modules when it was found (modules.h): later, its addresses may mean others */
    uint32_t number;
    uint32_t depth;        /* native frames: the first words */
    uint32_t python_words; /* the words after them */
    uint8_t key[FFM_KEY_BYTES];
    uint64_t words[];
} ffm_interned;

/* A zeroed table is empty. It grows as stacks are added; those that search it meanwhile find what was there before. */
typedef struct {
    struct ffm_interned_slots *slots;
    uint32_t used;
} ffm_interned_table;

ffm_interned *ffm_interned_find(const ffm_interned_table *table, uint64_t hash, const uint64_t *words, uint32_t depth,
                                uint32_t python_words);

/* A stack with that key; only under the lock. */
ffm_interned *ffm_interned_find_key(const ffm_interned_table *table, const uint8_t *key);

/* Room for a stack with so many words, which stays for the life of the process; NULL if memory is short. */
ffm_interned *ffm_interned_allocate(size_t words);

/* Add a stack that is not there, to be found by its hash or by its key. Returns 0 if memory is short. */
int ffm_interned_add(ffm_interned_table *table, ffm_interned *stack);
int ffm_interned_add_by_key(ffm_interned_table *table, ffm_interned *stack);

/* The stacks that were found last, by their innermost frames: most calls come again from where they came before, and
 * then need no hash. */
enum { FFM_RECENT_STACKS = 1 << 8 };
typedef struct {
    ffm_interned *places[FFM_RECENT_STACKS];
} ffm_recent_stacks;

/* The stack with these words, if it is among them, or NULL; and the place where it belongs. */
const ffm_interned *ffm_interned_recent(ffm_recent_stacks *recent, uint32_t generation, const uint64_t *words,
                                        uint32_t depth, uint32_t python_words, ffm_interned ***place);

/* In a forked child, in which nobody searches. */
void ffm_interned_clear(ffm_interned_table *table);

#endif
