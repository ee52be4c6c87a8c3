// A conditional node of a graph copies to pinned memory, which the CPU reads or never reads. What it copies, and
// whether it does, cannot be asked.
// variants: read, never
#include "planted.h"

#include <cuda.h>

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

/* The body of a condition that is true at each launch. */
static CUgraph conditional_body(CUgraph graph)
{
    CUgraphConditionalHandle handle;
    expect("handle", cuGraphConditionalHandleCreate(&handle, graph, nullptr, 1, CU_GRAPH_COND_ASSIGN_DEFAULT),
           CUDA_SUCCESS);
    CUgraphNodeParams node = {};
    node.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    node.conditional.handle = handle;
    node.conditional.type = CU_GRAPH_COND_TYPE_IF;
    node.conditional.size = 1;
    CUgraphNode added;
    expect("node", cuGraphAddNode(&added, graph, nullptr, nullptr, 0, &node), CUDA_SUCCESS);
    return node.conditional.phGraph_out[0];
}

void program()
{
    cudaStream_t stream = independent_stream();
    int *device = device_integers(count), *host = pinned_integers(count);
    CUgraph graph, body;
    CUgraphExec executable;
    expect("graph", cuGraphCreate(&graph, 0), CUDA_SUCCESS);
    body = conditional_body(graph);
    expect("capture", cuStreamBeginCaptureToGraph(stream, body, nullptr, nullptr, 0, CU_STREAM_CAPTURE_MODE_GLOBAL),
           CUDA_SUCCESS);
    fill(device, count, 7, stream);
    DOWNLOAD_ASYNC(host, device, bytes, stream);
    expect("captured", cuStreamEndCapture(stream, nullptr), CUDA_SUCCESS);
    expect("executable", cuGraphInstantiateWithFlags(&executable, graph, 0), CUDA_SUCCESS);
    expect("launch", cuGraphLaunch(executable, stream), CUDA_SUCCESS);
    WAIT(last, cudaStreamSynchronize(stream)); // sync: read required (undecidable), never required (undecidable)
    if (variant("read"))
        expect("sum", sum(host, count), 7 * count);
}
