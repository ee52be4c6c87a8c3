// A graph is built node by node through the runtime. Between launches its copy goes to another buffer, or the whole is
// updated from a graph that copies there, or its kernel or function changes. The CPU reads what comes of it, or the
// buffer that is no longer the destination.
// variants: copy, copy_old, update, update_old, kernel, function
#include "planted.h"

constexpr int count = 16 * 1024;
constexpr size_t bytes = count * sizeof(int);

struct Built {
    cudaGraph_t graph;
    cudaGraphNode_t kernel, copy, function;
};

static int *device;

static void count_up(void *counter)
{
    ++*static_cast<volatile int *>(counter);
}

static cudaKernelNodeParams filling(int &value)
{
    static int size = count;
    static void *arguments[3];
    arguments[0] = &device, arguments[1] = &size, arguments[2] = &value;
    cudaKernelNodeParams launch = {};
    launch.func = const_cast<void *>(fill_kernel);
    launch.gridDim = dim3(count / threads_of_block);
    launch.blockDim = dim3(threads_of_block);
    launch.kernelParams = arguments;
    return launch;
}

static Built built(int *host, int value, int *counter)
{
    Built made = {};
    const cudaKernelNodeParams launch = filling(value);
    const cudaHostNodeParams call = {count_up, counter};
    check(cudaGraphCreate(&made.graph, 0));
    check(cudaGraphAddKernelNode(&made.kernel, made.graph, nullptr, 0, &launch));
    check(
        cudaGraphAddMemcpyNode1D(&made.copy, made.graph, &made.kernel, 1, host, device, bytes, cudaMemcpyDeviceToHost));
    if (variant("function"))
        check(cudaGraphAddHostNode(&made.function, made.graph, &made.copy, 1, &call));
    return made;
}

void program()
{
    static int counters[2];
    cudaStream_t stream = independent_stream();
    device = device_integers(count);
    int *before = pinned_integers(count), *now = pinned_integers(count);
    cudaGraphExec_t executable;
    Built first = built(before, 7, &counters[0]);
    check(cudaGraphInstantiate(&executable, first.graph, 0));
    check(cudaGraphLaunch(executable, stream));
    // sync: function required (undecidable), copy, copy_old, update, update_old, kernel unnecessary or conditionally unnecessary
    WAIT(first, cudaStreamSynchronize(stream));
    if (variant("copy") || variant("copy_old"))
        check(cudaGraphExecMemcpyNodeSetParams1D(executable, first.copy, now, device, bytes, cudaMemcpyDeviceToHost));
    if (variant("update") || variant("update_old")) {
        cudaGraphExecUpdateResultInfo outcome;
        check(cudaGraphExecUpdate(executable, built(now, 8, &counters[1]).graph, &outcome));
        expect("outcome", outcome.result, cudaGraphExecUpdateSuccess);
    }
    if (variant("kernel")) {
        int value = 8;
        const cudaKernelNodeParams launch = filling(value);
        check(cudaGraphExecKernelNodeSetParams(executable, first.kernel, &launch));
    }
    if (variant("function")) {
        const cudaHostNodeParams call = {count_up, &counters[1]};
        check(cudaGraphExecHostNodeSetParams(executable, first.function, &call));
    }
    check(cudaGraphLaunch(executable, stream));
    // sync: copy, update, kernel required, function required, copy_old, update_old unnecessary
    WAIT(second, cudaStreamSynchronize(stream));
    if (variant("copy"))
        expect("sum", sum(now, count), 7 * count);
    if (variant("update"))
        expect("sum", sum(now, count), 8 * count);
    if (variant("kernel"))
        expect("sum", sum(before, count), 8 * count);
    if (variant("function"))
        expect("called", counters[1], 1);
    settle();
}
