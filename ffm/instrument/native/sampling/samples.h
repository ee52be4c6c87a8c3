/* Samples of what the program's threads do between driver calls: one at each tick of the kernel, but no more than 1000
 * a second of a thread's processor time, and for at most a sixty-fourth of it. */
#ifndef FFM_SAMPLES_H
#define FFM_SAMPLES_H

/* From now on. */
void ffm_samples_open(void);

/* Called in a thread: it was started, or made its first driver call; and it is about to end. */
void ffm_samples_thread(void);
void ffm_samples_thread_ends(void);

/* The calling thread is about to take pending signals itself, which must not meet ours; it is not sampled any more. */
void ffm_samples_thread_takes_signals(void);

/* In a forked child, after its thread started again in the child's recording. */
void ffm_samples_after_fork(void);

#endif
