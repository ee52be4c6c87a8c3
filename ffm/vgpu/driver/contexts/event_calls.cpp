/* cuEvent…: marks in streams. */
#include "foundation/configuration.h"
#include "graphs/graph.h"
#include "wait.h"

using namespace vgpu;

namespace
{

CUresult destroy(CUevent event)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    return destroy_event(event) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult record(CUevent handle, CUstream stream_handle, DefaultStream default_stream, unsigned flags)
{
    Stream *stream;
    CUresult result = enter(stream_handle, default_stream, stream, Capturing::allowed);
    if (result != CUDA_SUCCESS)
        return result;
    if ((flags & ~unsigned{CU_EVENT_RECORD_EXTERNAL}) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    Event *event = find_event(handle);
    if (!event || event->context != stream->context)
        return CUDA_ERROR_INVALID_HANDLE;
    CallCost cost(microseconds(configuration().call_event));
    if (stream->capture && (flags & CU_EVENT_RECORD_EXTERNAL) != 0)
        return capture(*stream, RecordNode{handle});
    std::lock_guard<std::mutex> lock(scheduler().mutex);
    event->capture = stream->capture;
    event->capture_tail = stream->capture_tail;
    if (stream->capture)
        return stream->capture->usable ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    event->recorded = std::make_shared<Operation>();
    event->recorded->duration = microseconds(configuration().event_time);
    enqueue(*stream, event->recorded);
    return CUDA_SUCCESS;
}

/* Finds the event's mark and context. The mark is null if the event was never recorded. */
CUresult recorded(CUevent handle, OperationReference &mark, unsigned &flags, Context *&context)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    Event *event = find_event(handle);
    if (!event)
        return CUDA_ERROR_INVALID_HANDLE;
    std::lock_guard<std::mutex> lock(scheduler().mutex);
    if (event->capture)
        return CUDA_ERROR_CAPTURED_EVENT;
    mark = event->recorded;
    flags = event->flags;
    context = event->context;
    return context->error;
}

CUresult elapsed(float *milliseconds, CUevent first, CUevent second)
{
    OperationReference marks[2];
    unsigned flags[2] = {0, 0};
    Context *contexts[2] = {nullptr, nullptr};
    CUresult result = recorded(first, marks[0], flags[0], contexts[0]);
    if (result == CUDA_SUCCESS)
        result = recorded(second, marks[1], flags[1], contexts[1]);
    if (result != CUDA_SUCCESS)
        return result;
    if (!milliseconds)
        return CUDA_ERROR_INVALID_VALUE;
    if (!marks[0] || !marks[1] || contexts[0]->device != contexts[1]->device ||
        ((flags[0] | flags[1]) & CU_EVENT_DISABLE_TIMING) != 0)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!marks[0]->complete || !marks[1]->complete)
        return CUDA_ERROR_NOT_READY;
    *milliseconds = static_cast<float>(static_cast<double>(marks[1]->end - marks[0]->end) / 1e6);
    return CUDA_SUCCESS;
}

} // namespace

CUresult vgpu::record_event(CUevent event, CUstream stream, DefaultStream default_stream)
{
    return record(event, stream, default_stream, CU_EVENT_RECORD_DEFAULT);
}

DRIVER_CALL(cuEventCreate)(CUevent *event, unsigned int flags)
{
    Context *context;
    CUresult result = enter(context);
    if (result != CUDA_SUCCESS)
        return result;
    constexpr unsigned known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING;
    if (!event || (flags & ~known) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    *event = reinterpret_cast<CUevent>(create_event(*context, flags));
    return CUDA_SUCCESS;
}

DRIVER_CALL(cuEventDestroy_v2)(CUevent event)
{
    return destroy(event);
}
DRIVER_CALL(cuEventDestroy)(CUevent event)
{
    return destroy(event);
}

DRIVER_CALL_PER_STREAM(cuEventRecord, ptsz, (CUevent event, CUstream stream),
                       record(event, stream, default_stream, CU_EVENT_RECORD_DEFAULT))
DRIVER_CALL_PER_STREAM(cuEventRecordWithFlags, ptsz, (CUevent event, CUstream stream, unsigned int flags),
                       record(event, stream, default_stream, flags))

DRIVER_CALL(cuEventQuery)(CUevent event)
{
    OperationReference mark;
    unsigned flags;
    Context *context;
    CUresult result = recorded(event, mark, flags, context);
    if (result != CUDA_SUCCESS)
        return result;
    return !mark || mark->complete ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

DRIVER_CALL(cuEventSynchronize)(CUevent event)
{
    OperationReference mark;
    unsigned flags;
    Context *context;
    CUresult result = recorded(event, mark, flags, context);
    if (result != CUDA_SUCCESS)
        return result;
    CallCost cost(microseconds(configuration().call_synchronize));
    wait_for_gpu({mark});
    context->printed.show();
    return CUDA_SUCCESS;
}

DRIVER_CALL(cuEventElapsedTime)(float *milliseconds, CUevent first, CUevent second)
{
    return elapsed(milliseconds, first, second);
}
DRIVER_CALL(cuEventElapsedTime_v2)(float *milliseconds, CUevent first, CUevent second)
{
    return elapsed(milliseconds, first, second);
}
