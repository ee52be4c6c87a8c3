/* Call stacks of a thread that occur again. Each is recognised by the words of the stack that an unwinder would read on
 * its way through it: if it starts alike and all these words are the same, it would find the same frames. That takes a
 * fifth of the time of unwinding. */
#ifndef FFM_REPEATED_STACKS_H
#define FFM_REPEATED_STACKS_H

#include <stdbool.h>
#include <stdint.h>

/* How many stacks are known at a time, and by how many words at most. */
enum { FFM_REPEATED_SETS = 32, FFM_REPEATED_WAYS = 4, FFM_REPEATED_WORDS = 48 };

typedef struct {
    uint64_t frame_pointer; /* of the caller; if it is `followed`, the frames depend on it */
    const char *function;   /* as for ffm_stack_of_caller */
    uint32_t modules;       /* the generation of modules to which the addresses belong */
    uint32_t number;
    uint16_t count;
    bool followed;
    struct {
        uint64_t place, value;
    } words[FFM_REPEATED_WORDS]; /* in the order in which they are read */
} ffm_repeated_stack;

/* Zeroed, it knows none. */
typedef struct {
    struct {
        uint64_t caller, frame; /* 0: none */
    } starts[FFM_REPEATED_SETS][FFM_REPEATED_WAYS];
    ffm_repeated_stack stacks[FFM_REPEATED_SETS][FFM_REPEATED_WAYS];
    uint64_t met[FFM_REPEATED_SETS * FFM_REPEATED_WAYS]; /* hashes of starts with the stacks that were captured there */
    uint32_t captured, walked, added;
    bool changing;
} ffm_repeated_stacks;

/* The same as ffm_stack_of_caller, for the thread of which these are the stacks. */
uint32_t ffm_repeated_stack_of_caller(ffm_repeated_stacks *known, const uint64_t *frame, const char *function,
                                      bool *truncated);

#endif
