/* Ranges that are open to the thread that has touched them: by its key (keys.h), or because all others sleep. A thread
 * that wakes first arms the latter again, so that none of its accesses is missed, whatever woke it. */
#ifndef FFM_RESTING_H
#define FFM_RESTING_H

/* The calling thread starts another one, or a process: arm all ranges that rest, also those that are a thread's by its
 * key. */
void ffm_resting_end(void);

/* The calling thread ends: arm what rests for it by its key. */
void ffm_resting_thread_ends(void);

/* No thread gets a key any more: the program uses keys itself, or starts threads unseen. */
void ffm_resting_without_keys(void);

/* The calling thread continues after a system call, or in a handler of the program: the same as ffm_resting_end, if it
 * had slept. */
void ffm_resting_wake(void);

#endif
