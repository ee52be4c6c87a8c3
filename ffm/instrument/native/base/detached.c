#include "detached.h"

bool ffm_detached_flag;

void ffm_detach(void)
{
    __atomic_store_n(&ffm_detached_flag, true, __ATOMIC_RELAXED);
}
