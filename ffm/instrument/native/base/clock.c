#include "clock.h"

int (*ffm_clock)(clockid_t, struct timespec *) = clock_gettime;
