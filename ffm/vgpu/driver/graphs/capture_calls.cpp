/* Stream capture: calls on the stream become nodes of a graph, and nothing runs. */
#include <algorithm>

#include "graph.h"

using namespace vgpu;

namespace
{

cuuint64_t next_id = 1; /* guarded by the scheduler's mutex */

thread_local CUstreamCaptureMode capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

bool valid(CUstreamCaptureMode mode)
{
    return mode >= CU_STREAM_CAPTURE_MODE_GLOBAL && mode <= CU_STREAM_CAPTURE_MODE_RELAXED;
}

CUresult begin(CUstream handle, DefaultStream default_stream, CUstreamCaptureMode mode,
               const std::shared_ptr<Graph> &graph, std::vector<GraphNode *> tail = {}, bool given = false)
{
    Stream *stream;
    CUresult result = enter(handle, default_stream, stream, Capturing::allowed);
    if (result != CUDA_SUCCESS)
        return result;
    if (!valid(mode))
        return CUDA_ERROR_INVALID_VALUE;
    if (stream == &stream->context->legacy)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    std::lock_guard<std::mutex> lock(scheduler().mutex);
    if (stream->capture)
        return CUDA_ERROR_ILLEGAL_STATE;
    stream->capture = std::make_shared<Capture>(Capture{graph, stream, mode, next_id++, true, {stream}, given});
    stream->capture_tail = std::move(tail);
    ++stream->context->capturing;
    return CUDA_SUCCESS;
}

/* Adds what is captured to an existing graph, after the given nodes. */
CUresult begin_in(CUstream handle, DefaultStream default_stream, CUgraph graph_handle, const CUgraphNode *dependencies,
                  std::size_t count, CUstreamCaptureMode mode)
{
    std::shared_ptr<Graph> graph = find_graph(graph_handle);
    std::vector<GraphNode *> tail;
    if (!graph || !find_nodes(*graph, dependencies, count, tail))
        return CUDA_ERROR_INVALID_VALUE;
    return begin(handle, default_stream, mode, graph, std::move(tail), true);
}

/* Replaces the nodes that the stream's next node depends on, or adds to them. */
CUresult update(CUstream handle, DefaultStream default_stream, const CUgraphNode *dependencies, std::size_t count,
                unsigned flags)
{
    Stream *stream;
    CUresult result = enter(handle, default_stream, stream, Capturing::allowed);
    if (result != CUDA_SUCCESS)
        return result;
    if (flags != CU_STREAM_ADD_CAPTURE_DEPENDENCIES && flags != CU_STREAM_SET_CAPTURE_DEPENDENCIES)
        return CUDA_ERROR_INVALID_VALUE;
    std::lock_guard<std::mutex> lock(scheduler().mutex);
    if (!stream->capture)
        return CUDA_ERROR_ILLEGAL_STATE;
    std::vector<GraphNode *> given;
    if (!find_nodes(*stream->capture->graph, dependencies, count, given))
        return CUDA_ERROR_INVALID_VALUE;
    std::vector<GraphNode *> &tail = stream->capture_tail;
    if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES)
        tail.clear();
    for (GraphNode *node : given)
        if (std::find(tail.begin(), tail.end(), node) == tail.end())
            tail.push_back(node);
    return CUDA_SUCCESS;
}

void add_with_dependencies(GraphNode *node, std::set<GraphNode *> &found)
{
    if (!found.insert(node).second)
        return;
    for (GraphNode *dependency : node->dependencies)
        add_with_dependencies(dependency, found);
}

/* Whether the stream that began the capture depends on everything that other streams captured. */
bool joined(const Capture &capture)
{
    std::set<GraphNode *> before;
    for (GraphNode *node : capture.origin->capture_tail)
        add_with_dependencies(node, before);
    std::vector<GraphNode *> ends = capture.left;
    for (const Stream *stream : capture.streams)
        ends.insert(ends.end(), stream->capture_tail.begin(), stream->capture_tail.end());
    return std::all_of(ends.begin(), ends.end(), [&](GraphNode *node) { return before.count(node) != 0; });
}

CUresult end(CUstream handle, DefaultStream default_stream, CUgraph *graph)
{
    Stream *stream;
    CUresult result = enter(handle, default_stream, stream, Capturing::allowed);
    if (result != CUDA_SUCCESS)
        return result;
    if (graph)
        *graph = nullptr;
    std::shared_ptr<Capture> capture;
    {
        std::lock_guard<std::mutex> lock(scheduler().mutex);
        capture = stream->capture;
        if (!capture)
            return CUDA_ERROR_ILLEGAL_STATE;
        if (!graph && !capture->given)
            return CUDA_ERROR_INVALID_VALUE;
        if (capture->origin != stream)
            return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
        result = capture->usable ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        if (result == CUDA_SUCCESS && !joined(*capture))
            result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
        for (Stream *member : capture->streams) {
            member->capture = nullptr;
            member->capture_tail.clear();
            --member->context->capturing;
        }
        capture->streams.clear();
        capture->usable = false;
    }
    if (result == CUDA_SUCCESS && graph)
        *graph = handle_of(capture->graph);
    return result;
}

struct Answers {
    cuuint64_t *id = nullptr;
    CUgraph *graph = nullptr;
    const CUgraphNode **dependencies = nullptr;
    const CUgraphEdgeData **edges = nullptr;
    std::size_t *count = nullptr;
};

CUresult information(CUstream handle, DefaultStream default_stream, CUstreamCaptureStatus *status,
                     const Answers &answers = {})
{
    Stream *stream;
    CUresult result = enter(handle, default_stream, stream, Capturing::allowed);
    if (result != CUDA_SUCCESS)
        return result;
    if (!status)
        return CUDA_ERROR_INVALID_VALUE;
    std::lock_guard<std::mutex> lock(scheduler().mutex);
    const Capture *capture = stream->capture.get();
    *status = !capture          ? CU_STREAM_CAPTURE_STATUS_NONE
              : capture->usable ? CU_STREAM_CAPTURE_STATUS_ACTIVE
                                : CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    if (*status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
        return CUDA_SUCCESS;
    if (answers.id)
        *answers.id = capture->id;
    if (answers.graph)
        *answers.graph = handle_of(capture->graph);
    if (answers.dependencies)
        *answers.dependencies = reinterpret_cast<const CUgraphNode *>(stream->capture_tail.data());
    if (answers.edges)
        *answers.edges = nullptr;
    if (answers.count)
        *answers.count = stream->capture_tail.size();
    return CUDA_SUCCESS;
}

} // namespace

CUresult vgpu::capture(Stream &stream, NodeWork work)
{
    std::lock_guard<std::mutex> lock(scheduler().mutex);
    if (!stream.capture->usable)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    GraphNode *node = add_node(*stream.capture->graph, stream.capture_tail, std::move(work));
    stream.capture_tail = {node};
    return CUDA_SUCCESS;
}

DRIVER_CALL_PER_STREAM(cuStreamBeginCapture_v2, ptsz, (CUstream stream, CUstreamCaptureMode mode),
                       begin(stream, default_stream, mode, std::make_shared<Graph>()))
DRIVER_CALL_PER_STREAM(cuStreamBeginCaptureToGraph, ptsz,
                       (CUstream stream, CUgraph graph, const CUgraphNode *dependencies, const CUgraphEdgeData *,
                        size_t count, CUstreamCaptureMode mode),
                       begin_in(stream, default_stream, graph, dependencies, count, mode))
DRIVER_CALL_PER_STREAM(cuStreamUpdateCaptureDependencies, ptsz,
                       (CUstream stream, CUgraphNode *dependencies, size_t count, unsigned int flags),
                       update(stream, default_stream, dependencies, count, flags))
DRIVER_CALL_PER_STREAM(cuStreamUpdateCaptureDependencies_v2, ptsz,
                       (CUstream stream, CUgraphNode *dependencies, const CUgraphEdgeData *, size_t count,
                        unsigned int flags),
                       update(stream, default_stream, dependencies, count, flags))
DRIVER_CALL_PER_STREAM(cuStreamBeginCapture, ptsz, (CUstream stream),
                       begin(stream, default_stream, CU_STREAM_CAPTURE_MODE_GLOBAL, std::make_shared<Graph>()))
DRIVER_CALL_PER_STREAM(cuStreamEndCapture, ptsz, (CUstream stream, CUgraph *graph), end(stream, default_stream, graph))
DRIVER_CALL_PER_STREAM(cuStreamIsCapturing, ptsz, (CUstream stream, CUstreamCaptureStatus *status),
                       information(stream, default_stream, status))
DRIVER_CALL_PER_STREAM(cuStreamGetCaptureInfo, ptsz, (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id),
                       information(stream, default_stream, status, {id}))
DRIVER_CALL_PER_STREAM(cuStreamGetCaptureInfo_v2, ptsz,
                       (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                        const CUgraphNode **dependencies, size_t *count),
                       information(stream, default_stream, status, {id, graph, dependencies, nullptr, count}))
DRIVER_CALL_PER_STREAM(cuStreamGetCaptureInfo_v3, ptsz,
                       (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                        const CUgraphNode **dependencies, const CUgraphEdgeData **edges, size_t *count),
                       information(stream, default_stream, status, {id, graph, dependencies, edges, count}))

DRIVER_CALL(cuThreadExchangeStreamCaptureMode)(CUstreamCaptureMode *mode)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!mode || !valid(*mode))
        return CUDA_ERROR_INVALID_VALUE;
    CUstreamCaptureMode before = capture_mode;
    capture_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}
