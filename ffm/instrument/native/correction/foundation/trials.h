/* Whether corrections pay, measured while the program runs.
 *
 * A correction is kept only where the program gets on faster with it. The time in the call alone does not tell: a
 * removed wait may just move into the next one, and a late download costs time where it is touched. So the time from
 * one call of a site to the next is compared, which contains all of that. Now and then a unit (sites that are corrected
 * together, such as frees and their allocations) goes through a pair of blocks: some calls as the program made them,
 * and some corrected; which comes first alternates. Each block ends with an original call, which waits for what the
 * block left behind, so that a block pays for its own work. The relative differences of the pairs are a sample; the
 * unit goes back to the original calls while the centre of that is a loss beyond its standard error (pairs.h). The mean
 * would not do: on a machine in use, other programs disturb single blocks by many times what a correction costs. How
 * much calls within the blocks differ gives the error of a single pair, so one pair is enough where the loss is large
 * compared with the noise. Where it is not, further pairs follow at once: up to a few, and more while they show a loss.
 * If the calls come in bursts, blocks begin and end in the same place of a burst, because pauses between bursts would
 * decide the comparison. The first pair follows the first corrected call, which may prepare something.
 *
 * A loss in few calls is hardly ever part of a comparison, and the centre hides it. So the time in the unit's calls is
 * looked at between comparisons, too. If long calls lost more than the others gained, as many calls are left as they
 * are. If one of these is as long, the program itself makes long calls; otherwise the unit goes back for good.
 *
 * Only one unit at a time is compared, while the others stay corrected: waits that follow each other save nothing one
 * by one. A corrected block that is clearly the slower one ends early, and is short where there are few calls.
 * Comparisons become rare: together they may cost at most a fiftieth of the time. Not counted are each unit's first
 * one, and those of a unit that stays corrected though it seems to lose, because leaving some of its calls as they are
 * costs nothing. Units whose calls take no noticeable time cannot cost much, and come last. */
#ifndef FFM_REMEDY_TRIALS_H
#define FFM_REMEDY_TRIALS_H

#include <stdbool.h>
#include <stdint.h>

#include "remedy_records.h"

/* A unit that is not in the plan. */
enum { FFM_NO_UNIT = 0xffffffff };

/* Begin with all units of the plan corrected; also in a forked child. */
void ffm_trials_open(void);

/* Whether a call of the site is to be corrected. */
bool ffm_trial_corrects(const ffm_remedy_site *site);

/* A call of the site is over. It was to be corrected or not, and began at this time (ffm_now). */
void ffm_trial_called(const ffm_remedy_site *site, bool corrected, uint64_t began_ns);

/* A unit took this long outside its calls. May be called in a signal handler. */
void ffm_trial_spent(uint32_t unit, uint64_t ns);

#endif
