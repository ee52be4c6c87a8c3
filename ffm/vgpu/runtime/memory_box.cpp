/* Copies of boxes, between devices and in batches. */
#include <cstring>

#include "runtime_api.h"

using namespace cudart;

namespace
{

CUmemorytype type_of(const void *pointer)
{
    return pointer ? CU_MEMORYTYPE_UNIFIED : CU_MEMORYTYPE_ARRAY;
}

/* In plain memory, widths and positions are in bytes. */
CUDA_MEMCPY3D described(const cudaMemcpy3DParms &copy)
{
    CUDA_MEMCPY3D box;
    std::memset(&box, 0, sizeof box);
    box.srcMemoryType = type_of(copy.srcPtr.ptr);
    box.srcDevice = device(copy.srcPtr.ptr);
    box.srcPitch = copy.srcPtr.pitch;
    box.srcHeight = copy.srcPtr.ysize;
    box.srcXInBytes = copy.srcPos.x;
    box.srcY = copy.srcPos.y;
    box.srcZ = copy.srcPos.z;
    box.dstMemoryType = type_of(copy.dstPtr.ptr);
    box.dstDevice = device(copy.dstPtr.ptr);
    box.dstPitch = copy.dstPtr.pitch;
    box.dstHeight = copy.dstPtr.ysize;
    box.dstXInBytes = copy.dstPos.x;
    box.dstY = copy.dstPos.y;
    box.dstZ = copy.dstPos.z;
    box.WidthInBytes = copy.extent.width;
    box.Height = copy.extent.height;
    box.Depth = copy.extent.depth;
    return box;
}

cudaError_t copy_3d(const DriverTable &driver, const cudaMemcpy3DParms *copy)
{
    if (!copy)
        return cudaErrorInvalidValue;
    CUDA_MEMCPY3D box = described(*copy);
    return call(driver.cuMemcpy3D, &box);
}

cudaError_t copy_3d_async(const DriverTable &driver, const cudaMemcpy3DParms *copy, cudaStream_t stream)
{
    if (!copy)
        return cudaErrorInvalidValue;
    CUDA_MEMCPY3D box = described(*copy);
    return call(driver.cuMemcpy3DAsync, &box, stream_of(stream));
}

cudaError_t copy_batch(const DriverTable &driver, void *const *destinations, const void *const *sources,
                       const std::size_t *sizes, std::size_t count, cudaMemcpyAttributes *attributes,
                       std::size_t *first_copies, std::size_t attribute_count, cudaStream_t stream)
{
    /* Both structures have the same layout (driver_types.h, cuda.h). */
    static_assert(sizeof(cudaMemcpyAttributes) == sizeof(CUmemcpyAttributes));
    return call(driver.cuMemcpyBatchAsync, reinterpret_cast<CUdeviceptr *>(const_cast<void **>(destinations)),
                reinterpret_cast<CUdeviceptr *>(const_cast<const void **>(sources)), const_cast<std::size_t *>(sizes),
                count, reinterpret_cast<CUmemcpyAttributes *>(attributes), first_copies, attribute_count,
                stream_of(stream));
}

cudaError_t both_contexts(int ordinal, CUcontext &destination, int other, CUcontext &source)
{
    cudaError_t error = context_of(ordinal, destination);
    return error != cudaSuccess ? error : context_of(other, source);
}

} // namespace

RUNTIME_CALL_PER_STREAM(cudaMemcpy3D, ptds, (const cudaMemcpy3DParms *copy), copy_3d(driver, copy))
RUNTIME_CALL_PER_STREAM(cudaMemcpy3DAsync, ptsz, (const cudaMemcpy3DParms *copy, cudaStream_t stream),
                        copy_3d_async(driver, copy, stream))
RUNTIME_CALL_PER_STREAM(cudaMemcpyBatchAsync, ptsz,
                        (void *const *destinations, const void *const *sources, const size_t *sizes, size_t count,
                         cudaMemcpyAttributes *attributes, size_t *first_copies, size_t attribute_count,
                         cudaStream_t stream),
                        copy_batch(driver, destinations, sources, sizes, count, attributes, first_copies,
                                   attribute_count, stream))

RUNTIME_CALL cudaMemcpyPeer(void *destination, int ordinal, const void *source, int other, size_t bytes)
{
    CUcontext to = nullptr, from = nullptr;
    cudaError_t error = both_contexts(ordinal, to, other, from);
    return finish(error != cudaSuccess
                      ? error
                      : call(legacy_driver().cuMemcpyPeer, device(destination), to, device(source), from, bytes));
}
RUNTIME_CALL cudaMemcpyPeerAsync(void *destination, int ordinal, const void *source, int other, size_t bytes,
                                 cudaStream_t stream)
{
    CUcontext to = nullptr, from = nullptr;
    cudaError_t error = both_contexts(ordinal, to, other, from);
    return finish(error != cudaSuccess ? error
                                       : call(legacy_driver().cuMemcpyPeerAsync, device(destination), to,
                                              device(source), from, bytes, stream_of(stream)));
}
