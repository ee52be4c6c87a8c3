/* Functions that read a clock. */
#ifndef FFM_CLOCKS_H
#define FFM_CLOCKS_H

#include "followed.h"

extern ffm_followed ffm_clocks[];

#endif
