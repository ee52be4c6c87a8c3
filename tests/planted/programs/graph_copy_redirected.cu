// Downloads into four buffers in turn, each of which is read two turns later, after the event behind its download: by
// one graph whose copy is redirected before each launch, or by a graph for each buffer.
// variants: redirected, several
#include "planted.h"

constexpr int count = 16 * 1024, turns = 12, buffers = 4;

static cudaGraphExec_t graph_into(int *buffer, int *device, cudaGraphNode_t &copy)
{
    int size = count, value = 3;
    void *arguments[] = {&device, &size, &value};
    cudaKernelNodeParams launch = {};
    launch.func = const_cast<void *>(fill_kernel);
    launch.gridDim = dim3(count / threads_of_block);
    launch.blockDim = dim3(threads_of_block);
    launch.kernelParams = arguments;
    cudaGraph_t graph;
    cudaGraphNode_t kernel;
    cudaGraphExec_t made;
    check(cudaGraphCreate(&graph, 0));
    check(cudaGraphAddKernelNode(&kernel, graph, nullptr, 0, &launch));
    check(cudaGraphAddMemcpyNode1D(&copy, graph, &kernel, 1, buffer, device, count * sizeof(int),
                                   cudaMemcpyDeviceToHost));
    check(cudaGraphInstantiate(&made, graph, 0));
    return made;
}

void program()
{
    cudaStream_t stream = independent_stream();
    int *device = device_integers(count), *buffer[buffers];
    cudaEvent_t done[buffers];
    cudaGraphNode_t copy[buffers];
    cudaGraphExec_t graph[buffers];
    for (int i = 0; i < buffers; ++i) {
        buffer[i] = pinned_integers(count);
        check(cudaEventCreateWithFlags(&done[i], cudaEventDisableTiming));
        graph[i] = graph_into(buffer[i], device, copy[i]);
    }
    long long total = 0;
    for (int turn = 0; turn < turns; ++turn) {
        const int mine = turn % buffers, read = (turn + buffers - 2) % buffers;
        if (variant("redirected"))
            check(cudaGraphExecMemcpyNodeSetParams1D(graph[0], copy[0], buffer[mine], device, count * sizeof(int),
                                                     cudaMemcpyDeviceToHost));
        check(cudaGraphLaunch(variant("redirected") ? graph[0] : graph[mine], stream));
        check(cudaEventRecord(done[mine], stream));
        WAIT(each, cudaStreamSynchronize(stream)); // sync: unnecessary or conditionally unnecessary
        if (turn >= 2) {
            WAIT(event, cudaEventSynchronize(done[read])); // sync: required
            total += buffer[read][11];
        }
    }
    expect("total", total, (turns - 2) * 3);
}
