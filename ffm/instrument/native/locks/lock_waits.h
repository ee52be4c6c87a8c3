/* Which threads of the program waited until another one let something go: locks, condition variables, semaphores and
 * barriers of the C library (stage 2). */
#ifndef FFM_LOCK_WAITS_H
#define FFM_LOCK_WAITS_H

#include "followed.h"

/* The functions that wait and let go, to be replaced before the program runs. */
extern ffm_followed ffm_lock_waits[];

/* The recording is open: record waits from now on. */
void ffm_lock_waits_open(void);

/* In a forked child, after its recording is open. */
void ffm_lock_waits_after_fork(void);

#endif
