/* Threads and processes that the program starts by clone(2), past the C library. What they touch is not seen, so what
 * they can touch counts as used. Children of vfork are seen. */
#ifndef FFM_BIRTHS_H
#define FFM_BIRTHS_H

#include <stdbool.h>
#include <stdint.h>

#include "stacks.h"

/* Find the C library. */
void ffm_births_open(void);

/* Whether the code at these registers, which starts a thread or a process, is the C library's: such a thread has the
 * variables that the collector uses, and joins. */
bool ffm_births_by_library(const ffm_registers *from);

/* Whether it does so for the driver, not for the program: between it and the driver's frames are only those of
 * libraries that start threads. Unwinders end at clone. Two system calls per frame. */
bool ffm_births_by_driver(const ffm_registers *from);

/* Whether a system call starts a process that runs in the program's memory while the calling thread waits for it. What
 * that process touches is seen as what the thread touches. False if such a process itself makes the call. */
bool ffm_births_share(uint64_t number, const uint64_t *arguments);

/* The thread is about to make a system call that may start one; `from` are its registers there. */
void ffm_births_before(uint64_t number, const uint64_t *arguments, const ffm_registers *from);

#endif
