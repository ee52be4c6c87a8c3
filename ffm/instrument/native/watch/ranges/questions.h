/* What may be asked about the watched ranges without their lock, at any time. No answer misses a range that is there
 * all the time: while another thread changes the table, the answer is yes. */
#ifndef FFM_QUESTIONS_H
#define FFM_QUESTIONS_H

#include <stdbool.h>
#include <stdint.h>

/* Whether [start, end) contains pages of an armed range. */
bool ffm_ranges_overlap(uint64_t start, uint64_t end);

/* Whether some of these pages cannot even be read. */
bool ffm_ranges_hide(uint64_t start, uint64_t end);

/* Whether [start, end) contains bytes of a range in any state. */
bool ffm_ranges_reach(uint64_t start, uint64_t end);

/* Whether a range ends behind an address. */
bool ffm_ranges_end_behind(uint64_t address);

#endif
