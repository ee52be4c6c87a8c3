/* What the page watch must know of the program's threads: whether there are several, and whether the memory of each is
 * known. */
#ifndef FFM_THREADS_H
#define FFM_THREADS_H

#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

/* At the start of the program, when it has one thread: all others belong to the instruments, and are ignored. */
void ffm_threads_spare_instruments(void);

/* Ask all other threads by SIGSYS to join (dispatch.h), including those started meanwhile, and wait a while for
 * them. */
void ffm_threads_ask(void);

/* Whether this SIGSYS, which the process sent to the calling thread, may be the one that asks it. The program can send
 * one, too. */
bool ffm_threads_is_asked(void);

/* The calling thread answers, in the handler of the signal, and continues the system call that it was in. */
void ffm_threads_answer(ucontext_t *interrupted);

/* The program is about to start a thread; the calling thread is about to end. */
void ffm_threads_begin(void);
void ffm_threads_end(void);

/* Nothing will be known about a thread that is being started. */
void ffm_threads_lose(void);

/* Whether nothing is known about some thread. */
bool ffm_threads_lost(void);

/* Whether the program may have more than one thread. */
bool ffm_threads_several(void);

/* From now on, the driver may run functions of the program on its own threads, which are not counted; and whether it
 * may. */
void ffm_threads_lend_functions(void);
bool ffm_threads_functions_lent(void);

/* The calling thread is one of those that are counted; the driver's own threads are not. */
void ffm_threads_join(void);

/* The calling thread is about to make a system call, in which it touches nothing; and it continues, or a handler of the
 * program interrupts it there. ffm_threads_wake returns whether it had slept, and must not be interrupted by a
 * handler. */
void ffm_threads_sleep(void);
bool ffm_threads_wake(void);

/* Whether the calling thread is between these two. */
bool ffm_threads_asleep(void);

/* A number that changes whenever a thread wakes or is started; 0 if another thread than the calling one is awake. */
uint64_t ffm_threads_alone(void);

/* Whether no other thread has been awake since somebody was told this number. */
bool ffm_threads_alone_since(uint64_t told);

/* Whether all have answered. Threads that block SIGSYS or wait for it are not asked, and a thread that waits for its
 * vfork child does not answer: the memory they run on is unknown, and they may not tolerate faults. Not for signal
 * handlers. */
bool ffm_threads_known(void);

/* In a forked child: only the calling thread is left. */
void ffm_threads_after_fork(void);

#endif
