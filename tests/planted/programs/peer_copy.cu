// A peer copy within the device between two uploads: it overwrites the destination, or only reads it.
// variants: overwritten, read
#include "planted.h"

#include <cuda.h>

constexpr int count = 16 * 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count);
    int *other = device_integers(count);
    int *source = pinned_integers(count, 5);
    int *result = pinned_integers(count);
    CUcontext context;
    cuCtxGetCurrent(&context);
    CUdeviceptr here = reinterpret_cast<CUdeviceptr>(device), there = reinterpret_cast<CUdeviceptr>(other);
    fill(other, count, 3);
    UPLOAD_ASYNC(device, source, bytes); // transfer: needed (first)
    bool overwritten = variant("overwritten");
    expect("copied",
           cuMemcpyPeerAsync(overwritten ? here : there, context, overwritten ? there : here, context, bytes, nullptr),
           CUDA_SUCCESS);
    UPLOAD_ASYNC(device, source, bytes); // transfer: overwritten repeat (of first), read no-op (of first)
    add_slowly(device, device, count);
    DOWNLOAD_ASYNC(result, device, bytes);
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: required
    expect("sum", sum(result, count), 6 * count);
}
