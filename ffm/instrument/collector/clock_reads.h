/* The program's own looks at a clock: a wait before one may be there for it. */
#ifndef FFM_CLOCK_READS_H
#define FFM_CLOCK_READS_H

#include <stdint.h>

/* The program reads a clock; `caller` is the code that does. */
void ffm_clock_read(const void *caller);

/* A function of an interpreter that waits for its locks, and reads clocks to do so. */
void ffm_clock_interpreter_lock(uint64_t function);

#endif
