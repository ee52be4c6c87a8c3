// A box is sent twice by the driver's cuMemcpy3DAsync; or another box is sent.
// variants: same, other
// like: upload_2d_again
#include "planted.h"

#include <cuda.h>

constexpr int width = 64, height = 16, depth = 8, count = width * height * depth;

CUresult send(int *device, const int *source)
{
    CUDA_MEMCPY3D box = {};
    box.srcMemoryType = CU_MEMORYTYPE_HOST;
    box.srcHost = source;
    box.srcPitch = width * sizeof(int);
    box.srcHeight = height;
    box.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    box.dstDevice = reinterpret_cast<CUdeviceptr>(device);
    box.dstPitch = width * sizeof(int);
    box.dstHeight = height;
    box.WidthInBytes = width * sizeof(int);
    box.Height = height;
    box.Depth = depth;
    // transfer: same needed and no-op, other needed
    return cuMemcpy3DAsync(&box, nullptr);
}

void program()
{
    int *device = device_integers(count);
    int *source = pinned_integers(count, 5);
    int *other = pinned_integers(count, 6);
    int *result = pinned_integers(count);
    expect("sent", send(device, source), CUDA_SUCCESS);
    expect("sent", send(device, variant("same") ? source : other), CUDA_SUCCESS);
    add_slowly(device, device, count);
    DOWNLOAD_ASYNC(result, device, count * sizeof(int));
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: required
    expect("sum", sum(result, count), (variant("same") ? 6 : 7) * count);
}
