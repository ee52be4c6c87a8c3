/* Reads of clocks by the program and its libraries: the program may need a wait just before one for its timing. Who has
 * read is decided after the run, from the stack. */
#ifndef FFM_CLOCK_READS_H
#define FFM_CLOCK_READS_H

#include <stdbool.h>
#include <stdint.h>

#include "stacks.h"

/* From now on, reads are recorded. Of earlier ones, a few are remembered. */
void ffm_clock_reads_open(void);

/* The code at `caller` reads a clock. `from` are the registers there, or NULL if this function was called by it. */
void ffm_clock_read(const void *caller, const ffm_registers *from);

/* The same for a read of the processor's own counter (RDTSC, RDTSCP). */
void ffm_clock_counter_read(const ffm_registers *from);

/* From now on, until an operation ends, some reads of that counter are not seen. */
void ffm_clock_counter_unseen(void);

/* A function of an interpreter with which scripts read clocks; its other reads are for itself. */
void ffm_clock_of_interpreter(uint64_t function);

/* The code of an interpreter or, `for_scripts`, of a module of it with which scripts read clocks. Among the former,
 * only such functions and modules read clocks for scripts. */
void ffm_clock_interpreter_code(uint64_t first, uint64_t bytes, bool for_scripts);

#endif
