/* Accesses to watched ranges: what is recorded about each, and what happens to its range. Under the lock of the ranges,
 * and safe in signal handlers. */
#ifndef FFM_ACCESSES_H
#define FFM_ACCESSES_H

#include <stdbool.h>
#include <stdint.h>

#include "ranges.h"

/* Record an access of a kind `FFM_ACCESS_…` to a range. */
void ffm_access_record(const ffm_range *range, uint32_t kind, uint32_t flags, uint64_t address, uint64_t time,
                       uint32_t stack);

/* Record that from now on a range counts as used by the calling thread: results as read, and what the GPU only reads as
 * written. */
void ffm_access_record_presumed(const ffm_range *range, uint32_t flags);

/* The armed range at an index cannot be watched any more: it counts as used, and is removed from the table. */
void ffm_access_lost(uint32_t place, uint64_t time);

/* The range at an index is superseded, and is removed from the table. If it is open, so that an access of another
 * thread went unseen, it counts as used. */
void ffm_access_over(uint32_t place);

/* What lies in [start, end) is about to be replaced or released: open ranges there count as used, for the same
 * reason. */
void ffm_access_over_in(uint64_t start, uint64_t end);

/* A range that was spared counts as used by the calling thread, which has waited for it. It may be removed from the
 * table. */
void ffm_access_presume(uint32_t place);

/* The same for a range that is given up. What the thread uses from now on needs none of its later waits. */
void ffm_access_presume_unwatched(uint32_t place);

/* The watch detected an access to [start, end): it touches all armed ranges there that forbid it. */
void ffm_access_seen(uint64_t start, uint64_t end, bool writing, uint64_t time, uint32_t stack);

/* Record a CPU access to [start, end) that raises no fault (system call, free, driver): a kind other than read or
 * write. */
void ffm_access_unseen(uint64_t start, uint64_t end, bool writing, uint32_t kind, uint32_t stack);

/* Whether an access to [start, end) touches an armed range that forbids it. */
bool ffm_access_forbidden(uint64_t start, uint64_t end, bool writing);

/* The same, ignoring what counts as used already. */
bool ffm_access_first(uint64_t start, uint64_t end, bool writing);

/* Whether it was the calling thread that touched what rests. */
bool ffm_access_rests_for_caller(void);

/* Whether another thread than the one that has waited may wait for, or use, what it uses. */
bool ffm_access_others_may_wait(void);

/* Give up all armed ranges on a page: they count as used. */
void ffm_access_give_up(const ffm_page *page, uint64_t time);

/* The calling thread is about to fork. */
void ffm_accesses_before_fork(void);

/* Whether it matters who else touches a range after its first touch (stage 3). Each further access costs a fault. */
void ffm_accesses_of_others(bool matter);

/* In a forked child: record in its own recording; its parent's, which is still mapped, must not be written to. */
void ffm_accesses_reopen(void);

/* In a forked child: everything watched so far belongs to the parent. */
void ffm_accesses_after_fork(void);

#endif
