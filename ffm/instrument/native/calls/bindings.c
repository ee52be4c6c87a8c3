#include "bindings.h"

#include <string.h>

void *ffm_call_originals[FFM_FUNCTION_COUNT];
static const void *addresses[FFM_FUNCTION_COUNT];

void ffm_call_bind(uint32_t index, const void *address, void *original)
{
    __atomic_store_n(&addresses[index], address, __ATOMIC_RELEASE);
    __atomic_store_n(&ffm_call_originals[index], original, __ATOMIC_RELEASE);
}

uint32_t ffm_call_at(const void *address)
{
    for (uint32_t i = 0; i < FFM_FUNCTION_COUNT; i++)
        if (__atomic_load_n(&addresses[i], __ATOMIC_ACQUIRE) == address)
            return i;
    return FFM_FUNCTION_COUNT;
}

void *ffm_call_original_named(const char *name)
{
    for (uint32_t i = 0; i < FFM_FUNCTION_COUNT; i++)
        if (strcmp(ffm_catalogue[i].name, name) == 0)
            return ffm_call_original(i);
    return NULL;
}
