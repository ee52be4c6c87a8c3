/* Ranges that are open while all threads but one sleep, which has touched them. Whoever wakes arms them again before it
 * continues, so that none of its accesses is missed, whatever woke it. */
#ifndef FFM_RESTING_H
#define FFM_RESTING_H

/* The calling thread starts another one, or a process: arm all ranges that rest. */
void ffm_resting_end(void);

/* The calling thread continues after a system call, or in a handler of the program: the same, if it had slept. */
void ffm_resting_wake(void);

#endif
