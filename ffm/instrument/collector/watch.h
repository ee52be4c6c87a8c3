/* The watch: who first touches host memory that the GPU writes or still reads (docs/architecture.md#synchronizations).
 *
 * Memory is protected from the end of the wait on which its use may rely until it is touched. The GPU's own accesses do
 * not go through the program's page protection. Not covered: an access by another thread while a page next to a watched
 * range is open for one instruction or one system call.
 *
 * protected_data.c determines what is watched, arming.c from when, and accesses.c what an access means. faults.c and
 * trace.c detect accesses, system_calls.c predicts the kernel's, and aside.c avoids disturbing what is next to a range.
 */
#ifndef FFM_WATCH_H
#define FFM_WATCH_H

#include <stdbool.h>

#include "catalogue.h"
#include "ranges.h"
#include "thread.h"

/* `plan` is followed by the keys of the stacks whose operations are watched, or is NULL for all. */
bool ffm_watch_open(const ffm_plan_header *plan);

/* Before a call: handle what the driver is about to read or write on the CPU for the program, and what it frees. */
void ffm_watch_before(const ffm_function *function, const uint64_t *arguments, const ffm_operation *operation,
                      ffm_thread *thread);

/* After a call: note what its work writes or reads, and protect what it waited for. */
void ffm_watch_after(const ffm_function *function, const uint64_t *arguments, const ffm_operation *operation,
                     uint64_t number, ffm_thread *thread);

/* A wait under no public call has ended. */
void ffm_watch_private_wait(ffm_thread *thread);

/* Whether anything is watched; otherwise the calls below, and those of aside.h, are not needed. */
static inline bool ffm_watch_active(void)
{
    return ffm_ranges_count() != 0;
}

/* Whether work that no wait is known to have covered writes there. */
bool ffm_watch_in_flight(uint64_t start, uint64_t end);

/* The program releases memory, and its content is `gone`; or it moves it, or changes its protection. */
void ffm_watch_released(uint64_t start, uint64_t bytes, bool gone);

/* The program gives a block of its heap back: exactly these bytes, while others on its pages stay watched. */
void ffm_watch_freed(uint64_t start, uint64_t bytes);

/* Whether stacks of accesses are wanted (stage 3). */
bool ffm_watch_wants_stacks(void);

/* Around a fork, in the parent. The child comes to the gate before anything else, and the instruments that attach there
 * run their own code under ptrace, so no page may be protected then. The same holds when any other process is started.
 * Accesses of other threads meanwhile are not seen; if there are any, what was open counts as used. */
void ffm_watch_before_fork(void);
void ffm_watch_forked(void);

/* Something unseen uses the program's memory: everything armed counts as used; or from now on, all that would be. */
void ffm_watch_give_up(void);
void ffm_watch_lose(void);

/* In a forked child, first: release locks that threads of its parent may have held. Then continue watching what was
 * downloaded before the fork. */
void ffm_watch_free_locks(void);
void ffm_watch_after_fork(void);

#endif
