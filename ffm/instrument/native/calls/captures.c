#include "captures.h"

#include <cuda.h>
#include <stddef.h>

#include "waits.h"

typedef int (*capturing_question)(uint64_t, uint32_t *);

static capturing_question is_capturing;

static int32_t under_way; /* begun and not ended */

void ffm_captures_ask(void *function)
{
    is_capturing = (capturing_question)(uintptr_t)function;
}

static bool begins(const ffm_function *function)
{
    return function->effect == FFM_EFFECT_BEGIN_CAPTURE;
}

void ffm_captures_foresee(const ffm_function *function)
{
    if (begins(function))
        __atomic_add_fetch(&under_way, 1, __ATOMIC_SEQ_CST);
}

void ffm_captures_note(const ffm_function *function, const ffm_operation *operation)
{
    if (begins(function) && operation->result != 0)
        __atomic_sub_fetch(&under_way, 1, __ATOMIC_RELAXED);
    /* A capture that failed is over too, once its end was requested. */
    else if (function->effect == FFM_EFFECT_END_CAPTURE &&
             (operation->result == 0 || operation->result == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED ||
              operation->result == CUDA_ERROR_STREAM_CAPTURE_UNJOINED))
        __atomic_sub_fetch(&under_way, 1, __ATOMIC_RELAXED);
}

bool ffm_capturing(void)
{
    return __atomic_load_n(&under_way, __ATOMIC_RELAXED) > 0;
}

static bool puts_work(const ffm_function *function)
{
    switch (function->kind) {
    case FFM_KIND_TRANSFER:
    case FFM_KIND_SET:
    case FFM_KIND_LAUNCH:
    case FFM_KIND_HOST_FUNCTION:
    case FFM_KIND_MIGRATION:
    case FFM_KIND_ORDER:
        return function->stream >= 0 || function->shape == FFM_SHAPE_LAUNCH_CONFIGURATION;
    default:
        return false;
    }
}

bool ffm_captured(const ffm_function *function, const ffm_operation *operation, ffm_thread *thread)
{
    uint32_t status = CU_STREAM_CAPTURE_STATUS_NONE;
    if (!ffm_capturing() || is_capturing == NULL || !puts_work(function))
        return false;
    thread->bypass++;
    bool asked = is_capturing(ffm_stream_handle(function, operation), &status) == CUDA_SUCCESS;
    thread->bypass--;
    return asked && status != CU_STREAM_CAPTURE_STATUS_NONE;
}
