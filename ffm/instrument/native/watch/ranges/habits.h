/* Results that are used after the same wait each time: what the downloads of a call site bring, or what its launches
 * may write to a block of host memory. And likewise, what its asynchronous uploads read, which is used when the program
 * writes to it.
 *
 * To see a use costs a fault and two changes of protection, which take longer the more pages there are. A source whose
 * results a thread has used a hundred times in a row after its own wait, which was the first for them and made by the
 * same call site, has a habit: most of its results are not watched then, and count as used likewise. Which turns of a
 * wait are watched is decided for the wait: all of its results with a habit are watched in a turn, or none. So a wait
 * with several results is missed no more often than one with a single result. What is missed is bounded: on average,
 * one turn is watched when a hundredth as many were spared as there were in a row, and a result that is not used ends
 * its habit, and the row. Each distance is as likely as another, so that no period of the program goes unseen.
 *
 * Under the lock of the ranges, and safe in signal handlers. */
#ifndef FFM_HABITS_H
#define FFM_HABITS_H

#include <stdbool.h>
#include <stdint.h>

/* What the launches of a call site write to a block is a source of results, as a site's downloads are. */
uint32_t ffm_habit_of_block(uint32_t site, uint64_t block);

/* So is what the uploads of a call site read; a call can both upload and download. */
uint32_t ffm_habit_of_uploads(uint32_t site);

/* Whether the next result of a source, a call site or one of the above, need not be watched. */
bool ffm_habit_spares(uint32_t source);

/* Whether it is the habit that results of a source are used after a wait of a call site. */
bool ffm_habit_is(uint32_t source, uint32_t wait);

/* A wait of a call site was the first for some results: its next turn begins. */
void ffm_habit_turn(uint32_t wait);

/* A result that was watched was used so, or was not. */
void ffm_habit_kept(uint32_t source, uint32_t wait);
void ffm_habit_broken(uint32_t source);

#endif
