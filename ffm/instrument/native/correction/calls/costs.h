/* What corrections cost on this machine. Called by ffm itself, without a driver. */
#ifndef FFM_REMEDY_COSTS_H
#define FFM_REMEDY_COSTS_H

#include "remedy.h"

/* Seconds per byte, each the fastest of some rounds. */
typedef struct {
    double hash; /* XXH3-128 of memory that is in no cache */
    double copy; /* from such memory to other such memory */
} ffm_remedy_costs;

/* False if there is not enough memory to measure with. Takes tens of milliseconds. */
FFM_EXPORT bool ffm_remedy_measure(ffm_remedy_costs *costs);

#endif
