// A wait names the context that it waits for, as NVIDIA's runtime does since CUDA 13: the thread's, or another.
// variants: first, second, both
#include "planted.h"

#include <cuda.h>

constexpr int count = 4096;
constexpr size_t bytes = count * sizeof(int);

struct Download {
    CUcontext context;
    int *host;
};

static Download download_from(int device, int value)
{
    check(cudaSetDevice(device));
    int *memory = device_integers(count);
    Download download = {nullptr, pinned_integers(count)};
    cuCtxGetCurrent(&download.context);
    fill(memory, count, value);
    DOWNLOAD_ASYNC(download.host, memory, bytes);
    return download;
}

void program()
{
    Download first = download_from(0, 3);
    Download second = download_from(1, 5);
    // sync: first, both required, second unnecessary
    WAIT(of_first, static_cast<cudaError_t>(cuCtxSynchronize_v2(first.context)));
    if (!variant("second"))
        expect("first", sum(first.host, count), 3 * count);
    // sync: second, both required, first unnecessary
    WAIT(of_second, static_cast<cudaError_t>(cuCtxSynchronize_v2(second.context)));
    if (!variant("first"))
        expect("second", sum(second.host, count), 5 * count);
}
