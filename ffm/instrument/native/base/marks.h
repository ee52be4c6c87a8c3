/* What libffm_heap.so, which is preloaded into a corrected program, provides to the correcting library. */
#ifndef FFM_REMEDY_MARKS_H
#define FFM_REMEDY_MARKS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint64_t *peak;   /* updated with the most bytes that the blocks' own pages have cost so far */
    uint64_t allowed; /* the most that they may cost: beyond it, blocks get no pages of their own */
    /* A block with its own pages, which starts here, is about to be freed. */
    void (*before_free)(uint64_t start, uint64_t end);
} ffm_marks_observer;

typedef struct {
    /* Whether all pages of [first, last) belong to blocks that have pages of their own. */
    bool (*own)(uint64_t first, uint64_t last);
    void (*observe)(const ffm_marks_observer *observer);
} ffm_marks;

/* The library's only export besides the C library's names; returns the above. */
#define FFM_MARKS "ffm_marks_of_heap"

#endif
