/* The watch: who first touches host memory that the GPU writes or still reads (docs/architecture.md#synchronizations).
 *
 * Memory is protected from the end of the wait that its work may rely on until it is touched. The GPU's own accesses do
 * not go through the program's page protection. Not covered: an access by another thread in the moment in which a page
 * is open for one instruction, or for one system call, beside a watched range.
 *
 * protected_data.c says what is watched, arming.c from when on, accesses.c what an access means; faults.c and trace.c
 * come upon accesses, system_calls.c foresees the kernel's, aside.c keeps out of the way of what lies beside a range.
 */
#ifndef FFM_WATCH_H
#define FFM_WATCH_H

#include <stdbool.h>

#include "catalogue.h"
#include "ranges.h"
#include "thread.h"

/* `plan` holds the keys of the stacks whose operations are watched, or is NULL for all. */
bool ffm_watch_open(const uint8_t *plan, uint64_t keys);

/* Before a call: what the driver is about to read or write on the CPU for the program, and what it frees. */
void ffm_watch_before(const ffm_function *function, const uint64_t *arguments, const ffm_operation *operation,
                      ffm_thread *thread);

/* After a call: know what its work writes or reads, and protect what it waited for. */
void ffm_watch_after(const ffm_function *function, const uint64_t *arguments, const ffm_operation *operation,
                     uint64_t number, ffm_thread *thread);

/* A wait under no public call has ended. */
void ffm_watch_private_wait(ffm_thread *thread);

/* Whether anything is watched: without that the calls below, and those of aside.h, are not needed. */
static inline bool ffm_watch_active(void)
{
    return ffm_ranges_count() != 0;
}

/* Whether work that no wait is known to have covered writes there. */
bool ffm_watch_in_flight(uint64_t start, uint64_t end);

/* The program gives memory back, and what it holds is `gone`; or it moves it, or changes its protection. */
void ffm_watch_released(uint64_t start, uint64_t bytes, bool gone);

/* Whether stacks of accesses are wanted (stage 3). */
bool ffm_watch_wants_stacks(void);

/* Around a fork, in the parent. The child comes to the gate before anything else, and what attaches to it there runs
 * code of its own under ptrace: no page may be protected then. So it is around the begin of any other process. What
 * other threads touch meanwhile is not seen: where there are some, what lay open counts as used. */
void ffm_watch_before_fork(void);
void ffm_watch_forked(void);

/* The program goes on unseen: all that is armed counts as used. */
void ffm_watch_give_up(void);

/* In a forked child, first: locks that threads of its parent may have held are free. Then what was downloaded before
 * the fork is watched on. */
void ffm_watch_free_locks(void);
void ffm_watch_after_fork(void);

#endif
