/* Clocks in nanoseconds. */
#include <time.h>

static inline double clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}
