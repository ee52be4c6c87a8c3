/* Threads and processes that the program starts past the C library, by clone(2) or vfork: what they touch is not seen,
 * so that what they can touch counts as used. */
#ifndef FFM_BIRTHS_H
#define FFM_BIRTHS_H

#include <stdint.h>

#include "stacks.h"

/* Find the C library. */
void ffm_births_open(void);

/* The thread is about to make a system call that may start one; `from` are its registers there. */
void ffm_births_before(uint64_t number, const uint64_t *arguments, const ffm_registers *from);

#endif
