/* How much of what was downloaded the CPU touches before it is overwritten or given back.
 *
 * A download is followed where that is not dear: once it was touched, the rest of its range stays armed, and each
 * further touch opens a granule of it, a page at least (with the trace watch: the bytes that are touched). So whatever
 * stays armed to the end was not touched. What the GPU reads there counts as touched, too; in a rank of an MPI program
 * nothing is followed, since others may read there. Under the lock of the ranges, and safe in signal handlers. */
#ifndef FFM_EXTENTS_H
#define FFM_EXTENTS_H

#include "ranges.h"

/* A fault costs so many nanoseconds; 0 where accesses are seen without faults. Downloads are followed from now on. */
void ffm_extents_open(uint64_t fault_cost);

/* The granule by which a download to a range is followed; 0 where it is not. */
uint32_t ffm_extents_granule(const ffm_range *range);

/* A wait that covers a download is over, and its range armed: it is followed from now on. */
void ffm_extents_begin(ffm_range *range);

/* An armed range is about to be taken off its memory since [start, end) was touched: keep the rest armed. */
void ffm_extents_first_touch(uint32_t place, uint64_t start, uint64_t end);

/* What is left of a download is touched. It may be taken out of the table. */
void ffm_extents_touch(uint32_t place, uint64_t start, uint64_t end);

/* The GPU reads [start, end): that counts as touched. Takes the lock. */
void ffm_extents_used_by_gpu(uint64_t start, uint64_t end);

/* It is not known any more what is touched of a range. */
void ffm_extents_lose(ffm_range *range);

/* The same for all in [start, end). */
void ffm_extents_lose_in(uint64_t start, uint64_t end);

/* A child is about to be forked, which may touch what it has from its parent: nothing is followed any more. */
void ffm_extents_before_fork(void);

/* In a forked child: record in its own recording. */
void ffm_extents_after_fork(void);

#endif
