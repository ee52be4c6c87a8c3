// The same by the driver interface: cuMemcpyDtoHAsync and cuCtxSynchronize.
// variants: read, never
// like: download_async_pinned
#include "planted.h"

#include <cuda.h>

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count);
    int *host = pinned_integers(count);
    fill(device, count, 7);
    CUdeviceptr address = reinterpret_cast<CUdeviceptr>(device);
    expect("copied", cuMemcpyDtoHAsync(host, address, bytes, nullptr), CUDA_SUCCESS);
    WAIT(last, static_cast<cudaError_t>(cuCtxSynchronize())); // sync: read required, never unnecessary
    if (variant("read"))
        expect("sum", sum(host, count), 7 * count);
}
