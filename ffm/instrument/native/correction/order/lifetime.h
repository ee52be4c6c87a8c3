/* What becomes of everything that corrections keep when they stop, when their context ends, and in a forked child. */
#ifndef FFM_REMEDY_LIFETIME_H
#define FFM_REMEDY_LIFETIME_H

/* When corrections stop: first call `deliver`, which delivers pending downloads, then pay what removed waits promised,
 * and return kept device memory to the driver. */
void ffm_lifetime_open(void (*deliver)(void));

/* The context is about to be destroyed or reset, along with everything kept in it. */
void ffm_lifetime_context_ends(void);

void ffm_lifetime_after_fork(void);

#endif
