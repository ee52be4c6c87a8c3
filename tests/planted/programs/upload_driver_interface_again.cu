// The same by the driver interface: cuMemcpyHtoDAsync twice.
// variants: same, other
// like: upload_again
#include "planted.h"

#include <cuda.h>

constexpr int count = 16 * 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count);
    CUdeviceptr address = reinterpret_cast<CUdeviceptr>(device);
    int *source = pinned_integers(count, 5);
    int *other = pinned_integers(count, 6);
    int *result = pinned_integers(count);
    const int *second = variant("same") ? source : other;
    expect("sent", cuMemcpyHtoDAsync(address, source, bytes, nullptr), CUDA_SUCCESS); // transfer: needed (first)
    // transfer: same no-op (of first), other needed
    expect("sent", cuMemcpyHtoDAsync(address, second, bytes, nullptr), CUDA_SUCCESS);
    add_slowly(device, device, count);
    DOWNLOAD_ASYNC(result, device, bytes);
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: required
    expect("sum", sum(result, count), (variant("same") ? 6 : 7) * count);
}
