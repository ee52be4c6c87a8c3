/* Contexts, streams and events, and how a driver call finds the ones it received. */
#pragma once

#include <atomic>
#include <map>
#include <set>
#include <vector>

#include "foundation/cuda_api.h"
#include "foundation/devices.h"
#include "printed.h"
#include "scheduler.h"

namespace vgpu
{

struct Context;
struct Graph;
struct GraphNode;
struct Stream;

/* The stream that the handle 0 stands for: the `_ptds` and `_ptsz` exports mean the thread's own. */
enum class DefaultStream { legacy, per_thread };

/* Whether a call may be made on a stream that is being captured into a graph. */
enum class Capturing { refused, allowed };

/* A stream whose calls become a graph, and those that joined it by events. */
struct Capture {
    std::shared_ptr<Graph> graph;
    Stream *origin; /* null: destroyed */
    CUstreamCaptureMode mode;
    cuuint64_t id;
    bool usable = true; /* until a call that cannot be captured */
    std::set<Stream *> streams;
    bool given = false;              /* the graph, by the program */
    std::vector<GraphNode *> left{}; /* the last nodes of streams that were destroyed */
};

struct Stream {
    Context *context;
    unsigned flags; /* CU_STREAM_DEFAULT or CU_STREAM_NON_BLOCKING */
    int priority;
    std::uint64_t id;
    OperationReference last{};               /* null: nothing enqueued yet */
    std::shared_ptr<Capture> capture{};      /* null: it is not being captured */
    std::vector<GraphNode *> capture_tail{}; /* what the next captured node comes after */
};

struct Event {
    Context *context;
    unsigned flags;
    OperationReference recorded;        /* null: never recorded */
    std::shared_ptr<Capture> capture{}; /* that of the stream in which it was last recorded; null: not captured */
    std::vector<GraphNode *> capture_tail{};
};

struct Context {
    std::uint64_t id = 0;
    CUdevice device = 0;
    unsigned flags = 0;
    bool primary = false;
    std::atomic<int> uses{1}; /* those of cuCtxAttach, and its creation */
    Stream legacy = {};
    std::set<Stream *> streams; /* all but `legacy` */
    std::set<Event *> events;
    std::vector<OperationReference> orphans;          /* last work of streams that were destroyed */
    std::vector<OperationReference> blocking_orphans; /* of these, the ones that the legacy stream comes after */
    std::map<int, std::size_t> limits;                /* those that were set */
    std::atomic<CUresult> error{CUDA_SUCCESS};        /* sticky: the GPU could not do its work */
    std::map<std::uint64_t, CUdevice> peers; /* devices whose memory this one reaches directly, by the contexts' ids */
    std::atomic<int> capturing{0};           /* streams that are being captured */
    Printed printed;                         /* by its kernels */

    /* Locked. The last operation of every stream. */
    std::vector<OperationReference> outstanding();

    /* Whether the device is this one's, or peer access to it is enabled. */
    bool reaches(CUdevice other);
};

/* What nearly all calls check first: CUDA_SUCCESS, or why the calling thread cannot use the driver. */
CUresult enter();

/* Like enter(), and also returns the calling thread's current context. */
CUresult enter(Context *&context);

/* Like enter(context), and also finds the stream.
 *
 * Errors: CUDA_ERROR_INVALID_HANDLE; CUDA_ERROR_STREAM_CAPTURE_IMPLICIT for the legacy default stream while a stream
 * that it would wait for is being captured; CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED if the stream itself is being
 * captured and the call `refused` that, which also makes the capture unusable. */
CUresult enter(CUstream handle, DefaultStream default_stream, Stream *&stream,
               Capturing capturing = Capturing::refused);

/* Returns CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, after which the capture can only be ended. */
CUresult refuse_capture(Stream &stream);

/* What enter() checks while any stream of the context is being captured. */
CUresult captured_state(Stream &stream, Capturing capturing);

/* Locked. The stream is destroyed: its capture can only be ended if the stream began it. */
void leave_capture(Stream &stream);

/* Locked. Orders the operation after the stream's earlier work, after what the legacy default stream's rules demand,
 * and after `others`. */
void enqueue(Stream &stream, const OperationReference &operation, const std::vector<OperationReference> &others = {});

/* Like enqueue, for a caller that does not hold the scheduler's mutex. */
void submit(Stream &stream, const OperationReference &operation);

/* Waits for all earlier work of the context. */
void wait_for_context(Context &context);

/* Waits for the stream's earlier work; for the legacy default stream also for that of all blocking streams.
 */
void wait_for_stream(Stream &stream);

/* True if wait_for_stream would not wait. */
bool is_idle(Stream &stream);

Context *find_context(CUcontext handle);
Context *current_context();

/* Like find_context, for a caller that makes the context current: the handle of a primary context outlives its reset,
 * and the context is created again. */
Context *revived_context(CUcontext handle);

/* Creates and destroys the objects behind handles. */
Context *create_context(CUdevice device, unsigned flags);
void destroy_context(Context *context);
Stream *create_stream(Context &context, unsigned flags, int priority);
/* With an `id`, only the stream with that id: the handle of a destroyed one may have been reused. */
bool destroy_stream(CUstream handle, std::uint64_t id = 0);
Event *create_event(Context &context, unsigned flags);
bool destroy_event(CUevent handle);
Event *find_event(CUevent handle);

/* As cuEventRecord. */
CUresult record_event(CUevent event, CUstream stream, DefaultStream default_stream);

/* The device's primary context; null if it does not exist and `create` is false. */
Context *primary_context(CUdevice device, bool create);

/* True once cuInit has succeeded in this process. */
bool initialised();

/* Marks the calling thread as one that runs a host function, which must not call the driver. */
class HostFunctionScope
{
  public:
    HostFunctionScope();
    ~HostFunctionScope();
};

} // namespace vgpu

/* Defines a driver call and its per-thread-default-stream twin (suffix ptsz or ptds); in `expression`,
 * `default_stream` says which one is running. */
#define DRIVER_CALL_PER_STREAM(name, suffix, parameters, expression)                                                   \
    DRIVER_CALL(name) parameters                                                                                       \
    {                                                                                                                  \
        [[maybe_unused]] constexpr auto default_stream = vgpu::DefaultStream::legacy;                                  \
        return expression;                                                                                             \
    }                                                                                                                  \
    DRIVER_CALL(name##_##suffix) parameters                                                                            \
    {                                                                                                                  \
        [[maybe_unused]] constexpr auto default_stream = vgpu::DefaultStream::per_thread;                              \
        return expression;                                                                                             \
    }
