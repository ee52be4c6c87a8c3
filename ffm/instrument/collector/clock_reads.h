/* The program's own clock reads: a wait before one may serve it. */
#ifndef FFM_CLOCK_READS_H
#define FFM_CLOCK_READS_H

#include <stdint.h>

/* The program reads a clock; `caller` is the code that does so. */
void ffm_clock_read(const void *caller);

/* A function of an interpreter that waits for its locks, and reads clocks for that. */
void ffm_clock_interpreter_lock(uint64_t function);

#endif
