/* Which threads meet where, in code that saves and restores the barriers by which they part and meet. */
#ifndef FFM_MACHINE_BARRIERS_H
#define FFM_MACHINE_BARRIERS_H

#include "machine_ways.h"

/* Find out by which instructions' barriers threads may meet, if the code restores any. A barrier may be in its own
 * place, in a register where it was saved, and in the place where it was restored. Nothing is found out about code that
 * is too large, or that stores a barrier in memory. */
void ffm_barriers_follow(ffm_ways *ways);

#endif
