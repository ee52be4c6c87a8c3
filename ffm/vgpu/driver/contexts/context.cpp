#include "context.h"

#include <algorithm>
#include <map>
#include <unordered_set>

#include "context_storage.h"
#include "foundation/configuration.h"
#include "foundation/driver_state.h"
#include "foundation/thread_state.h"
#include "memory/memory.h"
#include "wait.h"

namespace vgpu
{

namespace
{

/* The scheduler's mutex guards everything below. */
struct Handles {
    std::unordered_set<const void *> contexts;
    std::unordered_set<const void *> streams;
    std::unordered_set<const void *> events;
    std::map<CUdevice, Context *>
        primary; /* never freed, since programs keep the handles; in `contexts` while in use */
    std::uint64_t next_id = 1;
};

Handles &handles()
{
    static Handles *instance = new Handles;
    return *instance;
}

thread_local int host_function_depth = 0;

/* The calling thread's own default streams, one for each context. */
struct ThreadStreams {
    struct Entry {
        Stream *stream;
        std::uint64_t id;
    };
    std::map<std::uint64_t, Entry> of_context;

    ~ThreadStreams()
    {
        if (driver_unusable())
            return;
        for (auto &entry : of_context)
            destroy_stream(reinterpret_cast<CUstream>(entry.second.stream), entry.second.id);
    }
};
ThreadState<ThreadStreams> thread_streams;

Stream *thread_stream(Context &context)
{
    auto &streams = thread_streams.here().of_context;
    auto found = streams.find(context.id);
    if (found != streams.end())
        return found->second.stream;
    Stream *stream = create_stream(context, CU_STREAM_DEFAULT, 0);
    streams[context.id] = {stream, stream->id};
    return stream;
}

bool blocking(const Stream &stream)
{
    return (stream.flags & CU_STREAM_NON_BLOCKING) == 0;
}

bool is_complete(const OperationReference &operation)
{
    return !operation || operation->complete.load(std::memory_order_acquire);
}

void forget_complete(std::vector<OperationReference> &operations)
{
    operations.erase(std::remove_if(operations.begin(), operations.end(), is_complete), operations.end());
}

/* With the mutex held: the work that an operation on the legacy default stream must follow. */
std::vector<OperationReference> behind_blocking_streams(const Context &context)
{
    std::vector<OperationReference> result = {context.legacy.last};
    for (const Stream *stream : context.streams) {
        if (blocking(*stream))
            result.push_back(stream->last);
    }
    result.insert(result.end(), context.blocking_orphans.begin(), context.blocking_orphans.end());
    return result;
}

/* With the mutex held: puts a context that is new, or that was destroyed before, into its initial state. */
void begin(Context &context, unsigned flags)
{
    context.id = handles().next_id++;
    context.flags = flags;
    context.legacy = Stream{&context, CU_STREAM_DEFAULT, 0, handles().next_id++};
    context.streams.clear();
    context.events.clear();
    context.orphans.clear();
    context.blocking_orphans.clear();
    context.limits.clear();
    context.peers.clear();
    context.error = CUDA_SUCCESS;
    context.capturing = 0;
    handles().contexts.insert(&context);
}

/* The work that a wait for the stream must see completed. */
std::vector<OperationReference> pending_work_of(const Stream &stream)
{
    std::lock_guard<std::mutex> lock(scheduler().mutex);
    if (&stream == &stream.context->legacy)
        return behind_blocking_streams(*stream.context);
    return {stream.last};
}

} // namespace

HostFunctionScope::HostFunctionScope()
{
    ++host_function_depth;
}
HostFunctionScope::~HostFunctionScope()
{
    --host_function_depth;
}

std::vector<OperationReference> Context::outstanding()
{
    forget_complete(orphans);
    std::vector<OperationReference> result = orphans;
    if (!is_complete(legacy.last))
        result.push_back(legacy.last);
    for (const Stream *stream : streams) {
        if (!is_complete(stream->last))
            result.push_back(stream->last);
    }
    return result;
}

bool Context::reaches(CUdevice other)
{
    std::lock_guard<std::mutex> lock(scheduler().mutex);
    auto enabled = [other](const auto &peer) { return peer.second == other; };
    return other == device || std::any_of(peers.begin(), peers.end(), enabled);
}

CUresult enter()
{
    if (!initialised())
        return CUDA_ERROR_NOT_INITIALIZED;
    return host_function_depth > 0 ? CUDA_ERROR_NOT_PERMITTED : CUDA_SUCCESS;
}

CUresult enter(Context *&context)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    context = current_context();
    if (!context)
        return CUDA_ERROR_INVALID_CONTEXT;
    return context->error;
}

CUresult enter(CUstream handle, DefaultStream default_stream, Stream *&stream, Capturing capturing)
{
    Context *context;
    CUresult result = enter(context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!handle)
        handle = default_stream == DefaultStream::legacy ? CU_STREAM_LEGACY : CU_STREAM_PER_THREAD;
    if (handle == CU_STREAM_LEGACY) {
        stream = &context->legacy;
    } else if (handle == CU_STREAM_PER_THREAD) {
        stream = thread_stream(*context);
    } else {
        std::lock_guard<std::mutex> lock(scheduler().mutex);
        if (handles().streams.count(handle) == 0)
            return CUDA_ERROR_INVALID_HANDLE;
        stream = reinterpret_cast<Stream *>(handle);
    }
    return context->capturing == 0 ? CUDA_SUCCESS : captured_state(*stream, capturing);
}

void enqueue(Stream &stream, const OperationReference &operation, const std::vector<OperationReference> &others)
{
    Context &context = *stream.context;
    std::vector<OperationReference> predecessors = others;
    if (&stream == &context.legacy) {
        for (OperationReference &earlier : behind_blocking_streams(context))
            predecessors.push_back(std::move(earlier));
    } else {
        predecessors.push_back(stream.last);
        if (blocking(stream))
            predecessors.push_back(context.legacy.last);
    }
    operation->priority = stream.priority;
    operation->device = context.device;
    stream.last = operation;
    scheduler().submit(operation, predecessors);
}

void submit(Stream &stream, const OperationReference &operation)
{
    std::lock_guard<std::mutex> lock(scheduler().mutex);
    enqueue(stream, operation);
}

void wait_for_context(Context &context)
{
    std::vector<OperationReference> operations;
    {
        std::lock_guard<std::mutex> lock(scheduler().mutex);
        operations = context.outstanding();
    }
    wait_for_gpu(operations);
}

void wait_for_stream(Stream &stream)
{
    wait_for_gpu(pending_work_of(stream));
}

bool is_idle(Stream &stream)
{
    for (const OperationReference &operation : pending_work_of(stream)) {
        if (!is_complete(operation))
            return false;
    }
    return true;
}

Context *find_context(CUcontext handle)
{
    std::lock_guard<std::mutex> lock(scheduler().mutex);
    return handles().contexts.count(handle) ? reinterpret_cast<Context *>(handle) : nullptr;
}

Context *create_context(CUdevice device, unsigned flags)
{
    CallCost cost(microseconds(configuration().call_create_context));
    std::lock_guard<std::mutex> lock(scheduler().mutex);
    Context *context = new Context;
    context->device = device;
    begin(*context, flags);
    return context;
}

void destroy_context(Context *context)
{
    wait_for_context(*context);
    context->printed.show();
    destroy_storage(reinterpret_cast<CUcontext>(context));
    release_image_objects(reinterpret_cast<CUcontext>(context));
    release_arrays(reinterpret_cast<CUcontext>(context));
    release_allocations(reinterpret_cast<CUcontext>(context));
    std::lock_guard<std::mutex> lock(scheduler().mutex);
    for (Stream *stream : context->streams) {
        handles().streams.erase(stream);
        leave_capture(*stream);
        delete stream;
    }
    for (Event *event : context->events) {
        handles().events.erase(event);
        delete event;
    }
    handles().contexts.erase(context);
    if (!context->primary)
        delete context;
}

Context *primary_context(CUdevice device, bool create)
{
    {
        std::lock_guard<std::mutex> lock(scheduler().mutex);
        Context *context = handles().primary[device];
        if (handles().contexts.count(context) != 0)
            return context;
        if (!create)
            return nullptr;
    }
    CallCost cost(microseconds(configuration().call_create_context));
    for (int wait = 0; wait < configuration().context_waits; ++wait)
        wait_for_gpu({});
    std::lock_guard<std::mutex> lock(scheduler().mutex);
    Context *&context = handles().primary[device];
    if (!context) {
        context = new Context;
        context->device = device;
        context->primary = true;
    }
    if (handles().contexts.count(context) == 0)
        begin(*context, CU_CTX_SCHED_AUTO);
    return context;
}

Context *revived_context(CUcontext handle)
{
    CUdevice device = -1;
    {
        std::lock_guard<std::mutex> lock(scheduler().mutex);
        for (const auto &[owner, context] : handles().primary) {
            if (context && reinterpret_cast<CUcontext>(context) == handle)
                device = owner;
        }
    }
    return device < 0 ? find_context(handle) : primary_context(device, true);
}

Stream *create_stream(Context &context, unsigned flags, int priority)
{
    std::lock_guard<std::mutex> lock(scheduler().mutex);
    Stream *stream = new Stream{&context, flags, priority, handles().next_id++};
    context.streams.insert(stream);
    handles().streams.insert(stream);
    return stream;
}

bool destroy_stream(CUstream handle, std::uint64_t id)
{
    std::lock_guard<std::mutex> lock(scheduler().mutex);
    Stream *stream = reinterpret_cast<Stream *>(handle);
    if (handles().streams.count(stream) == 0 || (id != 0 && stream->id != id))
        return false;
    handles().streams.erase(stream);
    Context &context = *stream->context;
    forget_complete(context.orphans);
    forget_complete(context.blocking_orphans);
    if (!is_complete(stream->last)) {
        context.orphans.push_back(stream->last);
        if (blocking(*stream))
            context.blocking_orphans.push_back(stream->last);
    }
    leave_capture(*stream);
    stream->context->streams.erase(stream);
    delete stream;
    return true;
}

Event *create_event(Context &context, unsigned flags)
{
    std::lock_guard<std::mutex> lock(scheduler().mutex);
    Event *event = new Event{&context, flags, nullptr};
    handles().events.insert(event);
    context.events.insert(event);
    return event;
}

bool destroy_event(CUevent handle)
{
    std::lock_guard<std::mutex> lock(scheduler().mutex);
    if (handles().events.erase(handle) == 0)
        return false;
    Event *event = reinterpret_cast<Event *>(handle);
    event->context->events.erase(event);
    delete event;
    return true;
}

Event *find_event(CUevent handle)
{
    std::lock_guard<std::mutex> lock(scheduler().mutex);
    return handles().events.count(handle) ? reinterpret_cast<Event *>(handle) : nullptr;
}

} // namespace vgpu
