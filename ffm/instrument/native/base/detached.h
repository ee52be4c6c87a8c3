/* Whether the instruments have been told to let the program go on without them: nothing is recorded from then on, and
 * the hooks, which stay in place, only lead to the originals. */
#ifndef FFM_DETACHED_H
#define FFM_DETACHED_H

#include <stdbool.h>

void ffm_detach(void);

extern bool ffm_detached_flag;

static inline bool ffm_detached(void)
{
    return __builtin_expect(__atomic_load_n(&ffm_detached_flag, __ATOMIC_RELAXED), 0);
}

#endif
