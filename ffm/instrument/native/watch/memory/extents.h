/* How much of what was downloaded the CPU touches before it is overwritten or freed.
 *
 * A download is watched beyond its first touch if that is cheap: the rest of its range stays armed, and each further
 * touch opens a granule of it, at least one page (with the trace watch: just the touched bytes). So whatever stays
 * armed to the end was not touched. What the GPU reads there counts as touched, too. In a rank of an MPI program no
 * download is watched this way, because other processes may read there. Under the lock of the ranges, and safe in
 * signal handlers. */
#ifndef FFM_EXTENTS_H
#define FFM_EXTENTS_H

#include "ranges.h"

/* A fault costs this many nanoseconds, or 0 if accesses are seen without faults. From now on, downloads are watched. */
void ffm_extents_open(uint64_t fault_cost);

/* The granule with which a download to a range is watched; 0 if it is not. */
uint32_t ffm_extents_granule(const ffm_range *range);

/* During the call of a download whose range was added, no other thread ran. Nobody looks at what the call waited for
 * until it has arrived; what is in flight is protected, if that is cheap. */
void ffm_extents_guard(ffm_range *range);

/* A prepared range is touched before any wait. */
void ffm_extents_opened(ffm_range *range);

/* What is to arrive in [start, end) is about to be overwritten or released: nobody can touch it any more. */
void ffm_extents_end(uint64_t start, uint64_t end);

/* The calling thread is about to overwrite a box by a download, and the CPU writes nothing of it during the call, since
 * the memory is pinned, and the download asynchronous, or since it is `delivered` (delivery.h). If one range is exactly
 * this box, and nobody has touched it, its pages stay closed, which saves opening and closing them. Returns whether
 * they stay closed. */
bool ffm_extents_keep(const ffm_box *box, bool delivered);

/* That download takes the place of what was kept for it; NULL if nothing was, or if it was opened. */
ffm_range *ffm_extents_take_kept(const ffm_range *range);

/* The call of a thread is over: what it kept at an address and did not take is gone. */
void ffm_extents_kept_over(uint64_t address, uint32_t thread);

/* A wait that covers a download has ended (`first`: the first such wait), and its range is armed: watch its extent from
 * now on. */
void ffm_extents_begin(ffm_range *range, bool first);

/* An armed range is about to be removed because [start, end) was touched: keep the rest armed. */
void ffm_extents_first_touch(uint32_t place, uint64_t start, uint64_t end);

/* The remainder of a download is touched. It may be removed from the table. */
void ffm_extents_touch(uint32_t place, uint64_t start, uint64_t end);

/* The GPU reads [start, end), which counts as touched. Takes the lock. */
void ffm_extents_used_by_gpu(uint64_t start, uint64_t end);

/* From now on it is unknown what is touched in a range. */
void ffm_extents_lose(ffm_range *range);

/* The same for everything in [start, end). */
void ffm_extents_lose_in(uint64_t start, uint64_t end);

/* A child is about to be forked, which may touch data inherited from its parent: no extents are watched any more. */
void ffm_extents_before_fork(void);

/* In a forked child: record in its own recording. */
void ffm_extents_reopen(void);

#endif
