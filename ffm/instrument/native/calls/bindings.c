#include "bindings.h"

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

void *ffm_own_call(enum FfmOwnCall purpose, bool per_thread_stream)
{
    static const struct {
        enum FfmOwnCall purpose;
        bool per_thread_stream;
        uint32_t index;
    } forms[] = {
#define FFM_OWN_CALL(purpose_, per_thread_stream_, index_) {purpose_, per_thread_stream_, index_},
#include "catalogue.inc"
#undef FFM_OWN_CALL
    };
    void *found = NULL;
    for (size_t i = 0; i < sizeof forms / sizeof *forms && found == NULL; i++)
        if (forms[i].purpose == purpose && forms[i].per_thread_stream == per_thread_stream)
            found = ffm_call_original(forms[i].index);
    return found;
}
