/* Blocks of calls whose times are compared. */
#ifndef FFM_TIMED_BLOCK_H
#define FFM_TIMED_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* Calls that follow each other. Times are from the end of one call to that of the next. */
typedef struct {
    uint32_t calls;
    uint64_t ns;
    uint64_t within_ns; /* in the unit's calls and for late deliveries */
    /* Of the times that show how much calls of the block vary. */
    uint32_t typical;
    double sum_ns, squares;
} ffm_timed_block;

/* Add a call. `drains`: it is the original call that ends a corrected block. It waits for what the block left behind,
 * so its time counts for the block. But it tells nothing about noise: if nothing was left behind, it is merely shorter
 * than the others. */
void ffm_timed_block_add(ffm_timed_block *block, uint64_t since_ns, uint64_t within_ns, bool drains);

/* Mean nanoseconds from one call to the next, and within a call. */
double ffm_timed_block_per_call(const ffm_timed_block *block);
double ffm_timed_block_within_call(const ffm_timed_block *block);

/* The square of the standard error of the difference between the mean times of two blocks, from how much times vary
 * within each of them. 0 if there are too few. */
double ffm_timed_blocks_error_squared(const ffm_timed_block *one, const ffm_timed_block *other);

#endif
