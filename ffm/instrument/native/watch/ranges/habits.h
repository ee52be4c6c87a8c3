/* Downloads of a call site that are used after the same wait each time.
 *
 * To see a use costs a fault and two changes of protection. A site whose downloads a thread has used a hundred times in
 * a row after its own wait, which was the first for them and made by the same call site, has a habit: most of its
 * downloads are not watched then, and count as used likewise. What is missed by that is bounded: on the average, one
 * is watched when a hundredth as many were spared as there were in a row, and one that is not used so ends the habit.
 * Of distances, each is as likely as another, so that no period of the program goes unseen.
 *
 * Under the lock of the ranges, and safe in signal handlers. */
#ifndef FFM_HABITS_H
#define FFM_HABITS_H

#include <stdbool.h>
#include <stdint.h>

/* Whether the next download of a call site need not be watched. Each answer counts. */
bool ffm_habit_spares(uint32_t site);

/* Whether it is the habit of a call site that its downloads are used after a wait of another one. */
bool ffm_habit_is(uint32_t site, uint32_t wait);

/* A download that was watched was used so, or was not. */
void ffm_habit_kept(uint32_t site, uint32_t wait);
void ffm_habit_broken(uint32_t site);

#endif
