/* What is watched now, and what the program does to it other than accessing it. */
#ifndef FFM_WATCHED_H
#define FFM_WATCHED_H

#include <stdbool.h>
#include <stdint.h>

#include "ranges.h"

/* Whether anything is watched; otherwise the calls below, and those of aside.h, are not needed. */
static inline bool ffm_watch_active(void)
{
    return ffm_ranges_count() != 0;
}

/* Whether work that no wait is known to have covered writes there. */
bool ffm_watch_in_flight(uint64_t start, uint64_t end);

/* The program releases memory, moves it, or changes its protection. `gone`: its content is lost. */
void ffm_watch_released(uint64_t start, uint64_t bytes, bool gone);

/* The program gives a block of its heap back: exactly these bytes, while others on its pages stay watched. */
void ffm_watch_freed(uint64_t start, uint64_t bytes);

/* Whether stacks of accesses are wanted (stage 3). */
void ffm_watch_want_stacks(bool wanted);
bool ffm_watch_wants_stacks(void);

/* Around a fork, in the parent. The child comes to the gate before anything else, and the instruments that attach there
 * run their own code under ptrace, so no page may be protected then. The same holds when any other process is started.
 * Accesses of other threads meanwhile are not seen; if there are any, what was open counts as used. */
void ffm_watch_before_fork(void);
void ffm_watch_forked(void);

/* A child is about to be forked that shares memory with this process: what has yet to arrive counts as used. */
void ffm_watch_shared(void);

/* Something unseen uses the program's memory. Everything armed counts as used; with ffm_watch_lose, also everything
 * that would be armed from now on. */
void ffm_watch_give_up(void);
void ffm_watch_lose(void);

/* From now on, the pages of [start, end) must not be protected, since a thread runs there (thread_memory.h) or the
 * kernel writes there: what is on them, or has yet to arrive, counts as used. */
void ffm_watch_spare(uint64_t start, uint64_t end);

/* From now on, nothing that was issued so far is watched, and whether it is used later remains unknown. */
void ffm_watch_forget(void);

/* Memory in [start, end) is released, so nothing more arrives there; and set whom to tell. */
void ffm_watch_gone(uint64_t start, uint64_t end);
void ffm_watch_when_gone(void (*handler)(uint64_t start, uint64_t end));

/* In a forked child, after ffm_watch_free_locks: continue watching what was downloaded before the fork. */
void ffm_watch_after_fork(void);

#endif
