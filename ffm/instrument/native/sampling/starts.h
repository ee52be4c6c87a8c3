/* Threads that the program starts are sampled from their first instruction on, whether or not they call the driver. */
#ifndef FFM_STARTS_H
#define FFM_STARTS_H

#include <stdint.h>

/* The function of a thread, and its argument. */
typedef struct ffm_start ffm_start;

/* A place for them, until the thread has begun; NULL if too many are beginning. */
ffm_start *ffm_starts_take(void *(*what)(void *), void *argument);

/* The thread was not started after all. */
void ffm_starts_give_back(ffm_start *start);

/* What the thread is to begin with, in place of its function; its argument is an ffm_start. */
void *ffm_starts_run(void *start);

#endif
