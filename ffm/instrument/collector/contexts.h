/* The CUDA context that a call acts in. */
#ifndef FFM_CONTEXTS_H
#define FFM_CONTEXTS_H

#include <stdbool.h>
#include <stdint.h>

#include "catalogue.h"

enum { FFM_CONTEXTS = 256 };

/* The calling thread's context, numbered in order of first use; all behind FFM_CONTEXTS - 1 share that number. */
uint32_t ffm_context_number(void);

/* The driver's own answer: cuCtxGetCurrent, called without its hook. NULL where it has none: all are number 0. */
void ffm_contexts_ask(void *get_current);

/* Whether a call may end a context, and all memory that was allocated in it. */
bool ffm_context_ends(const ffm_function *function);

/* In a forked child, where a thread that is gone may have held the lock. */
void ffm_contexts_after_fork(void);

#endif
