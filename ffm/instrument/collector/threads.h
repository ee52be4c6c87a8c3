/* The program's threads, as the watch by pages has to know them: whether there are several, and whether the memory of
 * each is known. */
#ifndef FFM_THREADS_H
#define FFM_THREADS_H

#include <stdbool.h>
#include <ucontext.h>

/* At the start of the program, when it has one thread: all others are the instruments', and stay out of this. */
void ffm_threads_spare_instruments(void);

/* Ask all other threads by SIGSYS to join (dispatch.h), and wait a while until they have: those too that are begun
 * meanwhile. */
void ffm_threads_ask(void);

/* The calling thread answers, in the handler of the signal, and goes on with the system call that it was in. */
void ffm_threads_answer(ucontext_t *interrupted);

/* The program is about to begin a thread; the calling thread is about to end. */
void ffm_threads_begin(void);
void ffm_threads_end(void);

/* Of a thread that is begun nothing will be known. */
void ffm_threads_lose(void);

/* Whether the program may have more than one. */
bool ffm_threads_several(void);

/* Whether all have answered. One that holds SIGSYS back or waits for it, which is not asked, and one that waits for its
 * child of vfork do not: what they run on is unknown, and they may not bear faults. Not for signal handlers. */
bool ffm_threads_known(void);

/* In a forked child: only the calling thread is left. */
void ffm_threads_after_fork(void);

#endif
