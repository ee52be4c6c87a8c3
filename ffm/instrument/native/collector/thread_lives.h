/* Who started and joined each thread of the program (stage 2). */
#ifndef FFM_THREAD_LIVES_H
#define FFM_THREAD_LIVES_H

#include <stdint.h>

#include "followed.h"

/* The functions that start and join threads, to be replaced before the program runs. */
extern ffm_followed ffm_thread_lives[];

/* The recording is open: record what happened before, and what happens from now on. */
void ffm_thread_lives_open(void);

/* The calling thread, whose name is `name`, got a number. */
void ffm_thread_lives_number(uint64_t name, uint32_t number);

/* In a forked child, after its recording is open. */
void ffm_thread_lives_after_fork(void);

#endif
