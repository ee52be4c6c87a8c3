/* Ranges of addresses, each with a number, in a search tree. Finding the one that contains an address takes logarithmic
 * time, however long the longest range is.
 *
 * A treap (Seidel and Aragon 1996) by start, in which every node also knows how far its subtree reaches (Cormen et al.,
 * "Interval trees"). Needs no memory of its own. The caller holds a lock. */
#ifndef FFM_INTERVALS_H
#define FFM_INTERVALS_H

#include <stdint.h>

/* The node of one range. Numbers start at 1; 0 means none. */
typedef struct {
    uint64_t start, end;
    uint64_t furthest; /* the greatest end in its subtree */
    uint32_t parent, left, right;
} ffm_interval;

/* `nodes` has room for all numbers and is zero at first. */
typedef struct {
    ffm_interval *nodes;
    uint32_t root;
} ffm_intervals;

/* Add the range [start, end) under a number that is not in the tree. */
void ffm_intervals_add(ffm_intervals *tree, uint32_t number, uint64_t start, uint64_t end);

void ffm_intervals_remove(ffm_intervals *tree, uint32_t number);

/* Of the ranges that contain the address, the one that starts last; 0 if there is none. No two may start at the same
 * address. */
uint32_t ffm_intervals_around(const ffm_intervals *tree, uint64_t address);

/* The first range that starts at an address or after it; 0 if there is none. */
uint32_t ffm_intervals_from(const ffm_intervals *tree, uint64_t address);

/* Write the numbers of at most `most` ranges that overlap [start, end), in no particular order. Returns how many there
 * are, or `most` + 1 if there are more, or if the search takes too many steps. While another thread changes the tree,
 * the answer means nothing, but the search ends. */
uint32_t ffm_intervals_within(const ffm_intervals *tree, uint64_t start, uint64_t end, uint32_t *numbers,
                              uint32_t most);

#endif
