// A function of the program in a captured graph computes a result, which the CPU uses or does not.
// variants: use, ignore
#include "planted.h"

#include <atomic>

constexpr int count = 1024;
static std::atomic<int> result{0};

void program()
{
    cudaStream_t stream = independent_stream();
    int *device = device_integers(count);
    cudaGraphExec_t graph = captured(stream, [&] {
        fill(device, count, 7, stream);
        check(cudaLaunchHostFunc(stream, [](void *) { result = 42; }, nullptr));
    });
    check(cudaGraphLaunch(graph, stream));
    WAIT(last, cudaStreamSynchronize(stream)); // sync: use required, ignore required (undecidable)
    if (variant("use"))
        expect("result", result, 42);
}
