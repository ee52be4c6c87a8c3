// A box of the driver's cuMemcpy3DAsync arrives: the CPU reads its last slice, or the memory after it.
// variants: slice, behind
#include "planted.h"

#include <cuda.h>

constexpr int width = 64, height = 4, depth = 3;

void program()
{
    int *device = device_integers(width * height * depth);
    int *host = pinned_integers(width * height * (depth + 1), 1);
    fill(device, width * height * depth, 7);
    CUDA_MEMCPY3D box = {};
    box.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    box.srcDevice = reinterpret_cast<CUdeviceptr>(device);
    box.srcPitch = width * sizeof(int);
    box.srcHeight = height;
    box.dstMemoryType = CU_MEMORYTYPE_HOST;
    box.dstHost = host;
    box.dstPitch = width * sizeof(int);
    box.dstHeight = height;
    box.WidthInBytes = width * sizeof(int);
    box.Height = height;
    box.Depth = depth;
    expect("copied", cuMemcpy3DAsync(&box, nullptr), CUDA_SUCCESS);
    WAIT(last, cudaDeviceSynchronize()); // sync: slice required, behind unnecessary
    int first = width * height * (variant("slice") ? depth - 1 : depth);
    expect("sum", sum(host + first, width * height), (variant("slice") ? 7 : 1) * width * height);
}
