/* Encloses code that takes locks of the dynamic linker or of libunwind. A child forked while another thread held one
 * would find it held forever: instruments could not be loaded into it, nor stacks captured.
 *
 * A fork waits until no thread is inside, and threads wait until the fork is over. Neither waits long, because the
 * forking thread may wait in its own handlers (pthread_atfork) for a thread that waits here. Safe in signal
 * handlers. */
#ifndef FFM_UNWINDING_H
#define FFM_UNWINDING_H

#include <stdbool.h>

/* Around such code, on any thread; may be nested. Meanwhile the thread is not cancelled. */
void ffm_unwinding_begin(void);
void ffm_unwinding_end(void);

/* Whether the calling thread is within such code. It may then hold a lock of libunwind, so what libunwind calls (mmap)
 * must not take a stack. */
bool ffm_unwinding_here(void);

/* Around such code in the handler of a signal that may have come anywhere: the thread may hold the linker's lock, for
 * which another one waits while it holds one of libunwind or of ours. So nobody else may be inside, nor come in.
 * Returns false, and nothing ends, if somebody is, or if the thread is about to be cancelled. */
bool ffm_unwinding_begin_alone(void);
void ffm_unwinding_end_alone(void);

/* Around a fork: before it and, in the parent, after it; the last one in the child. */
void ffm_unwinding_before_fork(void);
void ffm_unwinding_forked(void);
void ffm_unwinding_after_fork(void);

#endif
