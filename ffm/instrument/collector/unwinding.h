/* Around what takes locks of the dynamic linker's or of libunwind's: a child that was forked while another thread held
 * one would find it held for ever, and neither instruments could be loaded into it nor stacks be taken.
 *
 * A fork waits until no thread is within, and threads wait until the fork is over; neither for long, since who forks
 * may wait in handlers of its own (pthread_atfork) for a thread that waits here. Safe in signal handlers. */
#ifndef FFM_UNWINDING_H
#define FFM_UNWINDING_H

/* Around such code, on any thread; may be nested. */
void ffm_unwinding_begin(void);
void ffm_unwinding_end(void);

/* Around a fork: before it and, behind it, in the parent; the last one in the child. */
void ffm_unwinding_before_fork(void);
void ffm_unwinding_forked(void);
void ffm_unwinding_after_fork(void);

#endif
