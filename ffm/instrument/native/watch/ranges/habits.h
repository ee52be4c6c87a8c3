/* Results that are used after the same wait each time: what the downloads of a call site bring, or what its launches
 * may write to a block of host memory. Likewise what its asynchronous uploads read, which counts as used when the
 * program writes to it.
 *
 * Seeing a use costs a fault and two changes of protection, which take longer the more pages there are. A source has a
 * habit if a thread has used its results a hundred times in a row after its own wait, which was the first for them and
 * made by the same call site. Most of its results are then not watched, and count as used in the same way. Which turns
 * of a wait are watched is decided for the wait: in a turn, either all of its results with a habit are watched, or
 * none. So a wait with several results is missed no more often than one with a single result. What is missed is
 * bounded: on average, one turn is watched after as many were spared as a hundredth of the row so far, and a result
 * that is not used ends the habit and the row. Each distance is as likely as another, so that no period of the program
 * goes unseen.
 *
 * Where a watched block is large, closing and opening all its pages takes much longer than a fault. Once the results of
 * a source were used first on the same page 16 times in a row, only that page is watched, and the result counts as used
 * at once. If that page is then not used, a needless wait may have been missed. So from then on, it takes a hundred
 * times in a row.
 *
 * Under the lock of the ranges, and safe in signal handlers. */
#ifndef FFM_HABITS_H
#define FFM_HABITS_H

#include <stdbool.h>
#include <stdint.h>

/* What the launches of a call site write to a block is a source of results, like a site's downloads. */
uint32_t ffm_habit_of_block(uint32_t site, uint64_t block);

/* So is what the uploads of a call site read; a call can both upload and download. */
uint32_t ffm_habit_of_uploads(uint32_t site);

/* That results of a source are used together with others (used_together.h) is a habit of its own. Where the above says
 * a wait, it begins with a use of the source whose results are used first. */
uint32_t ffm_habit_together(uint32_t source);
uint32_t ffm_habit_of_first(uint32_t source);

/* Whether the next result of a source, a call site or one of the above, need not be watched. */
bool ffm_habit_spares(uint32_t source);

/* Whether it is the habit that results of a source are used after a wait of a call site. */
bool ffm_habit_is(uint32_t source, uint32_t wait);

/* A wait of a call site was the first for some results: its next turn begins. */
void ffm_habit_turn(uint32_t wait);

/* A result that was watched was used in this way, or was not. */
void ffm_habit_kept(uint32_t source, uint32_t wait);
void ffm_habit_broken(uint32_t source);

/* A result is gone that was not used, or not seen to be: all habits of its source are broken. */
void ffm_habit_all_broken(uint32_t source);

/* A result that was used in this way was used first at an address. */
void ffm_habit_used_at(uint32_t source, uint64_t address);

/* The page on which results of a source are used first after a wait, so far; 0 if that is not known. */
uint64_t ffm_habit_page(uint32_t source, uint32_t wait);

#endif
