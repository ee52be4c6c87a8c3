#include "cache.h"

size_t ffm_cache_bytes(void)
{
    return 0;
}
