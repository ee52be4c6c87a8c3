/* cuStream…: streams, host functions, and waits for values in memory. */
#include <algorithm>
#include <ctime>
#include <type_traits>

#include "foundation/configuration.h"
#include "graphs/graph.h"
#include "memory/memory.h"
#include "wait.h"

using namespace vgpu;

namespace
{

constexpr int least_priority = 0;
constexpr int greatest_priority = -5;

CUresult make_stream(CUstream *handle, unsigned flags, int priority)
{
    Context *context;
    CUresult result = enter(context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!handle || (flags & ~unsigned{CU_STREAM_NON_BLOCKING}) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    priority = std::max(greatest_priority, std::min(least_priority, priority));
    *handle = reinterpret_cast<CUstream>(create_stream(*context, flags, priority));
    return CUDA_SUCCESS;
}

CUresult destroy(CUstream handle)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    return destroy_stream(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult synchronize(CUstream handle, DefaultStream default_stream)
{
    Stream *stream;
    CUresult result = enter(handle, default_stream, stream);
    if (result != CUDA_SUCCESS)
        return result;
    CallCost cost(microseconds(configuration().call_synchronize));
    Context *context = stream->context;
    wait_for_stream(*stream);
    context->printed.show();
    return context->error;
}

CUresult query(CUstream handle, DefaultStream default_stream)
{
    Stream *stream;
    CUresult result = enter(handle, default_stream, stream);
    if (result != CUDA_SUCCESS)
        return result;
    CallCost cost(microseconds(configuration().call_synchronize));
    return is_idle(*stream) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

/* Lets the stream join the capture in which the event was recorded. */
CUresult join(Stream &stream, const Event &event)
{
    std::lock_guard<std::mutex> lock(scheduler().mutex);
    bool captured = event.capture && event.capture->usable;
    if (!captured)
        return stream.capture ? CUDA_ERROR_STREAM_CAPTURE_ISOLATION : CUDA_ERROR_CAPTURED_EVENT;
    if (stream.capture && stream.capture != event.capture)
        return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    if (!stream.capture) {
        stream.capture = event.capture;
        stream.capture_tail.clear();
        stream.capture->streams.insert(&stream);
        ++stream.context->capturing;
    }
    for (GraphNode *node : event.capture_tail) {
        std::vector<GraphNode *> &tail = stream.capture_tail;
        if (std::find(tail.begin(), tail.end(), node) == tail.end())
            tail.push_back(node);
    }
    return CUDA_SUCCESS;
}

CUresult wait_event(CUstream handle, DefaultStream default_stream, CUevent event_handle, unsigned flags)
{
    Stream *stream;
    CUresult result = enter(handle, default_stream, stream, Capturing::allowed);
    if (result != CUDA_SUCCESS)
        return result;
    if ((flags & ~unsigned{CU_EVENT_WAIT_EXTERNAL}) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    Event *event = find_event(event_handle);
    if (!event)
        return CUDA_ERROR_INVALID_HANDLE;
    CallCost cost(microseconds(configuration().call_event));
    if (stream->capture || event->capture)
        return flags != 0 ? refuse_capture(*stream) : join(*stream, *event);
    std::lock_guard<std::mutex> lock(scheduler().mutex);
    enqueue(*stream, std::make_shared<Operation>(), {event->recorded});
    return CUDA_SUCCESS;
}

CUresult host_function(CUstream handle, DefaultStream default_stream, CUhostFn function, void *data)
{
    Stream *stream;
    CUresult result = enter(handle, default_stream, stream, Capturing::allowed);
    if (result != CUDA_SUCCESS)
        return result;
    if (!function)
        return CUDA_ERROR_INVALID_VALUE;
    CallCost cost(microseconds(configuration().call_launch));
    if (stream->capture)
        return capture(*stream, HostNode{{function, data}});
    auto operation = std::make_shared<Operation>();
    operation->engine = Engine::host_function;
    operation->work = [function, data] {
        HostFunctionScope scope;
        function(data);
    };
    submit(*stream, operation);
    return CUDA_SUCCESS;
}

CUresult add_callback(CUstream handle, DefaultStream default_stream, CUstreamCallback callback, void *data,
                      unsigned flags)
{
    Stream *stream;
    CUresult result = enter(handle, default_stream, stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (!callback || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    CallCost cost(microseconds(configuration().call_launch));
    auto operation = std::make_shared<Operation>();
    operation->engine = Engine::host_function;
    operation->work = [callback, handle, data, context = stream->context] {
        HostFunctionScope scope;
        context->printed.show();
        callback(handle, context->error, data);
    };
    submit(*stream, operation);
    return CUDA_SUCCESS;
}

template <typename Value> bool condition_holds(Value present, Value wanted, unsigned flags)
{
    using Signed = std::make_signed_t<Value>;
    switch (flags & 3) {
    case CU_STREAM_WAIT_VALUE_GEQ:
        return static_cast<Signed>(present - wanted) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ:
        return present == wanted;
    case CU_STREAM_WAIT_VALUE_AND:
        return (present & wanted) != 0;
    default:
        return ~(present | wanted) != 0;
    }
}

GpuRange word(void *value, std::size_t size)
{
    GpuRange range;
    range.gpu_view = static_cast<char *>(value);
    range.size = size;
    return range;
}

/* The GPU polls the word. Its thread sleeps between two reads. */
template <typename Value>
CUresult wait_value(CUstream handle, DefaultStream default_stream, CUdeviceptr address, Value value, unsigned flags)
{
    Stream *stream;
    CUresult result = enter(handle, default_stream, stream);
    if (result != CUDA_SUCCESS)
        return result;
    GpuRange range = gpu_range(address);
    if (range.kind == MemoryKind::pageable || address % sizeof value != 0 ||
        (flags & ~unsigned{3u | CU_STREAM_WAIT_VALUE_FLUSH}) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    CallCost cost(microseconds(configuration().call_launch));
    auto operation = std::make_shared<Operation>();
    operation->engine = Engine::memory_wait;
    operation->work = [range, value, flags, context = stream->context] {
        while (true) {
            Value present;
            if (range.gpu_view)
                __atomic_load(reinterpret_cast<Value *>(range.gpu_view), &present, __ATOMIC_ACQUIRE);
            else if (!transfer(word(&present, sizeof present), 0, range, 0, sizeof present)) {
                context->error = CUDA_ERROR_ILLEGAL_ADDRESS;
                return;
            }
            if (condition_holds(present, value, flags))
                return;
            timespec pause = {0, 10'000};
            nanosleep(&pause, nullptr);
        }
    };
    submit(*stream, operation);
    return CUDA_SUCCESS;
}

template <typename Value>
CUresult write_value(CUstream handle, DefaultStream default_stream, CUdeviceptr address, Value value, unsigned flags)
{
    Stream *stream;
    CUresult result = enter(handle, default_stream, stream);
    if (result != CUDA_SUCCESS)
        return result;
    GpuRange range = gpu_range(address);
    if (range.kind == MemoryKind::pageable || address % sizeof value != 0 ||
        (flags & ~unsigned{CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER}) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    CallCost cost(microseconds(configuration().call_launch));
    auto operation = std::make_shared<Operation>();
    operation->engine = Engine::compute;
    operation->occupancy = 0;
    operation->work = [range, value, context = stream->context]() mutable {
        if (range.gpu_view)
            __atomic_store(reinterpret_cast<Value *>(range.gpu_view), &value, __ATOMIC_RELEASE);
        else if (!transfer(range, 0, word(&value, sizeof value), 0, sizeof value))
            context->error = CUDA_ERROR_ILLEGAL_ADDRESS;
    };
    submit(*stream, operation);
    return CUDA_SUCCESS;
}

/* Stores one of the stream's properties in `target`. */
template <typename Value, typename Read>
CUresult property(CUstream handle, DefaultStream default_stream, Value *target, Read read)
{
    Stream *stream;
    CUresult result = enter(handle, default_stream, stream, Capturing::allowed);
    if (result != CUDA_SUCCESS)
        return result;
    if (!target)
        return CUDA_ERROR_INVALID_VALUE;
    *target = static_cast<Value>(read(*stream));
    return CUDA_SUCCESS;
}

CUcontext context_of(const Stream &stream)
{
    return reinterpret_cast<CUcontext>(stream.context);
}

} // namespace

DRIVER_CALL(cuStreamCreate)(CUstream *stream, unsigned int flags)
{
    return make_stream(stream, flags, 0);
}
DRIVER_CALL(cuStreamCreateWithPriority)(CUstream *stream, unsigned int flags, int priority)
{
    return make_stream(stream, flags, priority);
}
DRIVER_CALL(cuStreamDestroy_v2)(CUstream stream)
{
    return destroy(stream);
}
DRIVER_CALL(cuStreamDestroy)(CUstream stream)
{
    return destroy(stream);
}
DRIVER_CALL(cuCtxGetStreamPriorityRange)(int *least, int *greatest)
{
    Context *context;
    CUresult result = enter(context);
    if (least)
        *least = least_priority;
    if (greatest)
        *greatest = greatest_priority;
    return result;
}

DRIVER_CALL_PER_STREAM(cuStreamSynchronize, ptsz, (CUstream stream), synchronize(stream, default_stream))
DRIVER_CALL_PER_STREAM(cuStreamQuery, ptsz, (CUstream stream), query(stream, default_stream))
DRIVER_CALL_PER_STREAM(cuStreamWaitEvent, ptsz, (CUstream stream, CUevent event, unsigned int flags),
                       wait_event(stream, default_stream, event, flags))
DRIVER_CALL_PER_STREAM(cuLaunchHostFunc, ptsz, (CUstream stream, CUhostFn function, void *data),
                       host_function(stream, default_stream, function, data))
DRIVER_CALL_PER_STREAM(cuStreamAddCallback, ptsz,
                       (CUstream stream, CUstreamCallback callback, void *data, unsigned int flags),
                       add_callback(stream, default_stream, callback, data, flags))

#define VALUE_CALLS(bits, suffix)                                                                                      \
    DRIVER_CALL_PER_STREAM(cuStreamWaitValue##bits##suffix, ptsz,                                                      \
                           (CUstream stream, CUdeviceptr address, cuuint##bits##_t value, unsigned int flags),         \
                           wait_value<cuuint##bits##_t>(stream, default_stream, address, value, flags))                \
    DRIVER_CALL_PER_STREAM(cuStreamWriteValue##bits##suffix, ptsz,                                                     \
                           (CUstream stream, CUdeviceptr address, cuuint##bits##_t value, unsigned int flags),         \
                           write_value<cuuint##bits##_t>(stream, default_stream, address, value, flags))

VALUE_CALLS(32, _v2)
VALUE_CALLS(64, _v2)
VALUE_CALLS(32, )
VALUE_CALLS(64, )

DRIVER_CALL_PER_STREAM(cuStreamGetFlags, ptsz, (CUstream stream, unsigned int *flags),
                       property(stream, default_stream, flags, [](const Stream &s) { return s.flags; }))
DRIVER_CALL_PER_STREAM(cuStreamGetPriority, ptsz, (CUstream stream, int *priority),
                       property(stream, default_stream, priority, [](const Stream &s) { return s.priority; }))
DRIVER_CALL_PER_STREAM(cuStreamGetId, ptsz, (CUstream stream, unsigned long long *id),
                       property(stream, default_stream, id, [](const Stream &s) { return s.id; }))
DRIVER_CALL_PER_STREAM(cuStreamGetCtx, ptsz, (CUstream stream, CUcontext *context),
                       property(stream, default_stream, context, context_of))
DRIVER_CALL_PER_STREAM(cuStreamGetDevice, ptsz, (CUstream stream, CUdevice *device),
                       property(stream, default_stream, device,
                                [](const Stream &found) { return found.context->device; }))
