// Loading a module waits for all earlier work, although that does not use the module; a later wait protects the result.
// variants: read, never
#include "planted.h"

#include <cuda.h>

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count);
    int *host = pinned_integers(count);
    const KernelImage nothing = {KERNEL_IMAGE_HEADER, KERNEL_IMAGE_MAGIC, KERNEL_IMAGE_VERSION, nullptr};
    CUmodule module;
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, bytes);
    // sync: unnecessary or conditionally unnecessary
    WAIT(load, static_cast<cudaError_t>(cuModuleLoadData(&module, &nothing)));
    WAIT(last, cudaDeviceSynchronize()); // sync: read required, never unnecessary or conditionally unnecessary
    if (variant("read"))
        expect("sum", sum(host, count), 7 * count);
}
