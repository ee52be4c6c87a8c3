/* What libffm_heap.so, which is preloaded into a corrected program, tells the correcting library. */
#ifndef FFM_REMEDY_MARKS_H
#define FFM_REMEDY_MARKS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint64_t *peak; /* kept at how many bytes the blocks' own pages cost at most so far */
    /* A block with pages of its own, which begins here, is about to be given back. */
    void (*before_free)(uint64_t start, uint64_t end);
} ffm_marks_observer;

typedef struct {
    /* Whether all pages of [first, last) belong to blocks that have pages of their own. */
    bool (*own)(uint64_t first, uint64_t last);
    void (*observe)(const ffm_marks_observer *observer);
} ffm_marks;

/* The library's one export beyond the C library's names; returns the above. */
#define FFM_MARKS "ffm_marks_of_heap"

#endif
