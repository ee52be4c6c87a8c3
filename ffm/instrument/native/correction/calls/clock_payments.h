/* Waits that a program needs only for timing are made up for when it next reads a clock.
 *
 * A benchmark waits before it reads a clock, so that the time between two reads is that of the GPU's work. Such a wait
 * may be removed like any other, if that work is over when a clock is read. The program then reads what it would have
 * read, or less where the CPU went on meanwhile. Downloads are delivered by then, because their delivery was part of
 * the time. */
#ifndef FFM_REMEDY_CLOCK_PAYMENTS_H
#define FFM_REMEDY_CLOCK_PAYMENTS_H

#include <stdbool.h>
#include <stdint.h>

void ffm_clock_payments_open(void);

/* Where the driver's code is: its own reads of clocks are not the program's. */
void ffm_clock_payments_driver(uint64_t start, uint64_t end);

/* Whether the program's reads of clocks are seen, all those that recordings show. */
bool ffm_clock_payments_possible(void);

/* A wait was removed that the next read of a clock must make up for. */
void ffm_clock_payments_owe(void);

/* Make up for it now, if anything is owed. Nothing may be waited for while a stream is captured. */
void ffm_clock_payments_settle(void);

#endif
