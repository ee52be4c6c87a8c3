/* Streams and events. */
#include <memory>

#include "runtime_api.h"

using namespace cudart;

namespace
{

/* cudaStreamCallback_t takes the runtime's error type, CUstreamCallback the driver's. */
struct Callback {
    cudaStreamCallback_t function;
    void *data;
};

void run_callback(CUstream stream, CUresult result, void *data)
{
    std::unique_ptr<Callback> callback(static_cast<Callback *>(data));
    callback->function(reinterpret_cast<cudaStream_t>(stream), from(result), callback->data);
}

cudaError_t add_callback(const DriverTable &driver, cudaStream_t stream, cudaStreamCallback_t function, void *data,
                         unsigned flags)
{
    if (!function)
        return cudaErrorInvalidValue;
    auto callback = std::make_unique<Callback>(Callback{function, data});
    cudaError_t error =
        call(driver.cuStreamAddCallback, stream_of(stream), run_callback, static_cast<void *>(callback.get()), flags);
    if (error == cudaSuccess)
        callback.release();
    return error;
}

CUstream *stream_result(cudaStream_t *stream)
{
    return reinterpret_cast<CUstream *>(stream);
}
CUevent *event_result(cudaEvent_t *event)
{
    return reinterpret_cast<CUevent *>(event);
}

} // namespace

RUNTIME_CALL cudaStreamCreate(cudaStream_t *stream)
{
    return finish(call(legacy_driver().cuStreamCreate, stream_result(stream), 0u));
}
RUNTIME_CALL cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags)
{
    return finish(call(legacy_driver().cuStreamCreate, stream_result(stream), flags));
}
RUNTIME_CALL cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned int flags, int priority)
{
    return finish(call(legacy_driver().cuStreamCreateWithPriority, stream_result(stream), flags, priority));
}
RUNTIME_CALL cudaStreamDestroy(cudaStream_t stream)
{
    return finish(call(legacy_driver().cuStreamDestroy, stream_of(stream)));
}
RUNTIME_CALL cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    return finish(call(legacy_driver().cuCtxGetStreamPriorityRange, least, greatest));
}

RUNTIME_CALL_PER_STREAM(cudaStreamSynchronize, ptsz, (cudaStream_t stream),
                        call(driver.cuStreamSynchronize, stream_of(stream)))
RUNTIME_CALL_PER_STREAM(cudaStreamQuery, ptsz, (cudaStream_t stream), call(driver.cuStreamQuery, stream_of(stream)))
RUNTIME_CALL_PER_STREAM(cudaStreamWaitEvent, ptsz, (cudaStream_t stream, cudaEvent_t event, unsigned int flags),
                        call(driver.cuStreamWaitEvent, stream_of(stream), event_of(event), flags))
RUNTIME_CALL_PER_STREAM(cudaStreamAddCallback, ptsz,
                        (cudaStream_t stream, cudaStreamCallback_t function, void *data, unsigned int flags),
                        add_callback(driver, stream, function, data, flags))
RUNTIME_CALL_PER_STREAM(cudaLaunchHostFunc, ptsz, (cudaStream_t stream, cudaHostFn_t function, void *data),
                        call(driver.cuLaunchHostFunc, stream_of(stream), function, data))
RUNTIME_CALL_PER_STREAM(cudaStreamGetFlags, ptsz, (cudaStream_t stream, unsigned int *flags),
                        call(driver.cuStreamGetFlags, stream_of(stream), flags))
RUNTIME_CALL_PER_STREAM(cudaStreamGetPriority, ptsz, (cudaStream_t stream, int *priority),
                        call(driver.cuStreamGetPriority, stream_of(stream), priority))
RUNTIME_CALL_PER_STREAM(cudaStreamIsCapturing, ptsz, (cudaStream_t stream, cudaStreamCaptureStatus *status),
                        call(driver.cuStreamIsCapturing, stream_of(stream),
                             reinterpret_cast<CUstreamCaptureStatus *>(status)))

RUNTIME_CALL cudaEventCreate(cudaEvent_t *event)
{
    return finish(call(legacy_driver().cuEventCreate, event_result(event), 0u));
}
RUNTIME_CALL cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
    return finish(call(legacy_driver().cuEventCreate, event_result(event), flags));
}
RUNTIME_CALL cudaEventDestroy(cudaEvent_t event)
{
    return finish(call(legacy_driver().cuEventDestroy, event_of(event)));
}
RUNTIME_CALL cudaEventQuery(cudaEvent_t event)
{
    return finish(call(legacy_driver().cuEventQuery, event_of(event)));
}
RUNTIME_CALL cudaEventSynchronize(cudaEvent_t event)
{
    return finish(call(legacy_driver().cuEventSynchronize, event_of(event)));
}
RUNTIME_CALL cudaEventElapsedTime(float *milliseconds, cudaEvent_t first, cudaEvent_t second)
{
    return finish(call(legacy_driver().cuEventElapsedTime, milliseconds, event_of(first), event_of(second)));
}
RUNTIME_CALL_PER_STREAM(cudaEventRecord, ptsz, (cudaEvent_t event, cudaStream_t stream),
                        call(driver.cuEventRecord, event_of(event), stream_of(stream)))
RUNTIME_CALL_PER_STREAM(cudaEventRecordWithFlags, ptsz, (cudaEvent_t event, cudaStream_t stream, unsigned int flags),
                        call(driver.cuEventRecordWithFlags, event_of(event), stream_of(stream), flags))
