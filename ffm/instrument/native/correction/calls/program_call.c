#include "program_call.h"

#include "bindings.h"
#include "cache.h"
#include "driver.h"
#include "pool.h"
#include "state.h"

static bool give_back(void)
{
    bool pooled = ffm_pool_give_back();
    return ffm_cache_give_back() || pooled;
}

uint64_t ffm_forward(const ffm_program_call *call)
{
    uint64_t result = ffm_call_forward(call->index, call->arguments);
    if (__builtin_expect((int)result == FFM_CUDA_OUT_OF_MEMORY, 0) && give_back())
        result = ffm_call_forward(call->index, call->arguments);
    ffm_state_answered((int)result);
    return result;
}

uint64_t ffm_fall_back(const ffm_program_call *call, uint64_t *why)
{
    ffm_count(why);
    if (call->tally != NULL)
        ffm_count(&call->tally->waited);
    return ffm_forward(call);
}

bool ffm_is_planned(const ffm_program_call *call, uint32_t action)
{
    return call->site != NULL && (call->site->actions & action) && !ffm_stopped();
}

bool ffm_may(const ffm_program_call *call, uint32_t action)
{
    if (!call->corrected || !ffm_is_planned(call, action))
        return false;
    if (__builtin_expect(ffm_state_capturing(), 0)) {
        FFM_COUNT(waits_capture);
        ffm_count(&call->tally->waited);
        return false;
    }
    return true;
}
