// Two contexts of one device: the default stream of either orders nothing in the other, so the wait between them is
// needed. Within one context it is not.
// variants: from_default, to_default, copied, one_context
#include "planted.h"

#include <cuda.h>

constexpr int count = 4096;
constexpr size_t bytes = count * sizeof(int);

static void check(CUresult result)
{
    check(static_cast<cudaError_t>(result));
}

void program()
{
    CUcontext first = nullptr, second = nullptr;
    int *source = device_integers(count), *host = pinned_integers(count);
    cudaStream_t stream = nullptr, other = nullptr;
    check(cuCtxGetCurrent(&first));
    check(cuCtxCreate(&second, nullptr, 0, 0));
    int *result = device_integers(count);
    check(cudaStreamCreate(&other));
    check(cuCtxSetCurrent(first));
    check(cudaStreamCreate(&stream));
    cudaStream_t before = variant("to_default") ? stream : nullptr;
    fill(source, count, 7, before);
    // sync: from_default, to_default, copied required, one_context unnecessary or conditionally unnecessary
    WAIT(between, cudaStreamSynchronize(before));
    if (!variant("one_context"))
        check(cuCtxSetCurrent(second));
    cudaStream_t after = variant("one_context") ? stream : variant("to_default") ? nullptr : other;
    if (variant("copied"))
        check(cudaMemcpyAsync(result, source, bytes, cudaMemcpyDeviceToDevice, after));
    else
        add_slowly(result, source, count, after);
    DOWNLOAD_ASYNC(host, result, bytes, after);
    WAIT(last, cudaStreamSynchronize(after)); // sync: required
    expect("sum", sum(host, count), (variant("copied") ? 7 : 8) * count);
}
