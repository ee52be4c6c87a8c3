/* The paths through GPU code, as far as they do not depend on what registers hold. */
#ifndef FFM_MACHINE_WAYS_H
#define FFM_MACHINE_WAYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An instruction by which threads part, or begin something collective. */
typedef struct {
    uint32_t number, target; /* of instructions: its own, and of the one where the threads go on */
    uint32_t barrier;        /* if it is a parting */
} ffm_parting;

enum { FFM_PARTINGS_FOLLOWED = 256 };

/* A set of partings by barriers, one bit each. */
typedef struct {
    uint64_t bits[FFM_PARTINGS_FOLLOWED / 64];
} ffm_some_partings;

enum { FFM_CALLS_FOLLOWED = 63 };

/* Instructions, all of which are known (ffm_instruction_reads). */
typedef struct {
    const uint8_t *first;
    size_t count;
    uint32_t architecture;
    bool restores;                /* it restores barriers that it has saved in registers */
    ffm_parting *partings;        /* first those by barriers */
    uint32_t by_barriers, parted; /* how many are by barriers, and how many there are in all */
    ffm_some_partings *met_by;    /* for each instruction where threads meet, the partings that it ends, as far as known
                                     (ffm_barriers_follow) */
    uint32_t calls[FFM_CALLS_FOLLOWED], called; /* instructions that call; none if there are too many, or if one may
                                                   return elsewhere than right behind it */
} ffm_ways;

/* Find the paths of code of `bytes` bytes. Returns whether all are known; otherwise there is nothing to close. */
bool ffm_ways_open(ffm_ways *ways, uint32_t architecture, const uint8_t *first, size_t bytes);
void ffm_ways_close(ffm_ways *ways);

void ffm_ways_instruction(const ffm_ways *ways, size_t number, uint64_t word[2]);

/* Where a branch or a call leads, or where threads meet that part there or begin something collective: the number of an
 * instruction, negative if it is not known. */
int64_t ffm_ways_target(const ffm_ways *ways, const uint64_t word[2], size_t number);

/* Whether control may come from elsewhere to one of the instructions from the first to the last one. */
bool ffm_ways_join(const ffm_ways *ways, size_t first, size_t last);

/* Call `to` with each instruction behind a call: threads can return to these. */
void ffm_ways_returns(const ffm_ways *ways, void (*to)(void *context, size_t number), void *context);

/* Threads meet at an instruction, or end something collective there. Call `to` with each instruction where they may go
 * on, unless that is right behind it. */
void ffm_ways_meets(const ffm_ways *ways, size_t meeting, void (*to)(void *context, size_t number), void *context);

#endif
