/* The layout for C; see remedy_layout.h. */
#ifndef FFM_REMEDY_RECORDS_H
#define FFM_REMEDY_RECORDS_H

#include <stdint.h>

#include "remedy_layout.h"

_Static_assert(sizeof(ffm_remedy_plan) == 24, "the plan's writer counts on it");
_Static_assert(sizeof(ffm_remedy_site) == 32, "the plan's writer counts on it");

#endif
