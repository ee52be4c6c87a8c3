/* Allocating, copying and setting memory. */
#include <cstring>

#include "copy.h"

using namespace cudart;

cudaError_t cudart::copy(const DriverTable &driver, void *destination, const void *source, std::size_t bytes,
                         cudaMemcpyKind kind)
{
    cudaError_t error = ready();
    if (error != cudaSuccess || bytes == 0)
        return error;
    switch (kind) {
    case cudaMemcpyHostToDevice:
        return from(driver.cuMemcpyHtoD(device(destination), source, bytes));
    case cudaMemcpyDeviceToHost:
        return from(driver.cuMemcpyDtoH(destination, device(source), bytes));
    case cudaMemcpyDeviceToDevice:
        return from(driver.cuMemcpyDtoD(device(destination), device(source), bytes));
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
        return from(driver.cuMemcpy(device(destination), device(source), bytes));
    }
    return cudaErrorInvalidMemcpyDirection;
}

cudaError_t cudart::copy_async(const DriverTable &driver, void *destination, const void *source, std::size_t bytes,
                               cudaMemcpyKind kind, cudaStream_t handle)
{
    cudaError_t error = ready();
    if (error != cudaSuccess || bytes == 0)
        return error;
    CUstream stream = stream_of(handle);
    switch (kind) {
    case cudaMemcpyHostToDevice:
        return from(driver.cuMemcpyHtoDAsync(device(destination), source, bytes, stream));
    case cudaMemcpyDeviceToHost:
        return from(driver.cuMemcpyDtoHAsync(destination, device(source), bytes, stream));
    case cudaMemcpyDeviceToDevice:
        return from(driver.cuMemcpyDtoDAsync(device(destination), device(source), bytes, stream));
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
        return from(driver.cuMemcpyAsync(device(destination), device(source), bytes, stream));
    }
    return cudaErrorInvalidMemcpyDirection;
}

namespace
{

CUmemorytype destination_type(cudaMemcpyKind kind)
{
    if (kind == cudaMemcpyDefault)
        return CU_MEMORYTYPE_UNIFIED;
    return kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice ? CU_MEMORYTYPE_DEVICE
                                                                              : CU_MEMORYTYPE_HOST;
}

CUmemorytype source_type(cudaMemcpyKind kind)
{
    if (kind == cudaMemcpyDefault)
        return CU_MEMORYTYPE_UNIFIED;
    return kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice ? CU_MEMORYTYPE_DEVICE
                                                                              : CU_MEMORYTYPE_HOST;
}

/* Builds the box for cuMemcpy2D. Returns an error if a pitch is too small or the kind is unknown. */
cudaError_t describe(CUDA_MEMCPY2D &box, void *destination, std::size_t destination_pitch, const void *source,
                     std::size_t source_pitch, std::size_t width, std::size_t height, cudaMemcpyKind kind)
{
    if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault)
        return cudaErrorInvalidMemcpyDirection;
    if (width > destination_pitch || width > source_pitch)
        return cudaErrorInvalidPitchValue;
    std::memset(&box, 0, sizeof box);
    box.dstMemoryType = destination_type(kind);
    box.dstHost = destination;
    box.dstDevice = device(destination);
    box.dstPitch = destination_pitch;
    box.srcMemoryType = source_type(kind);
    box.srcHost = source;
    box.srcDevice = device(source);
    box.srcPitch = source_pitch;
    box.WidthInBytes = width;
    box.Height = height;
    return cudaSuccess;
}

cudaError_t copy_2d(const DriverTable &driver, void *destination, std::size_t destination_pitch, const void *source,
                    std::size_t source_pitch, std::size_t width, std::size_t height, cudaMemcpyKind kind)
{
    CUDA_MEMCPY2D box;
    cudaError_t error = describe(box, destination, destination_pitch, source, source_pitch, width, height, kind);
    return error != cudaSuccess ? error : call(driver.cuMemcpy2DUnaligned, &box);
}

cudaError_t copy_2d_async(const DriverTable &driver, void *destination, std::size_t destination_pitch,
                          const void *source, std::size_t source_pitch, std::size_t width, std::size_t height,
                          cudaMemcpyKind kind, cudaStream_t stream)
{
    CUDA_MEMCPY2D box;
    cudaError_t error = describe(box, destination, destination_pitch, source, source_pitch, width, height, kind);
    return error != cudaSuccess ? error : call(driver.cuMemcpy2DAsync, &box, stream_of(stream));
}

CUdeviceptr *as_device(void **pointer)
{
    return reinterpret_cast<CUdeviceptr *>(pointer);
}

/* For zero bytes, the runtime returns a null pointer and no error. */
cudaError_t nothing(void **pointer)
{
    if (!pointer)
        return cudaErrorInvalidValue;
    *pointer = nullptr;
    return cudaSuccess;
}

cudaMemoryType type_of(unsigned driver_type, unsigned managed)
{
    if (managed)
        return cudaMemoryTypeManaged;
    if (driver_type == CU_MEMORYTYPE_HOST)
        return cudaMemoryTypeHost;
    return driver_type == CU_MEMORYTYPE_DEVICE ? cudaMemoryTypeDevice : cudaMemoryTypeUnregistered;
}

} // namespace

RUNTIME_CALL cudaMalloc(void **pointer, size_t size)
{
    if (size == 0 || !pointer)
        return finish(nothing(pointer));
    return finish(call(legacy_driver().cuMemAlloc, as_device(pointer), size));
}

RUNTIME_CALL cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height)
{
    if (!pointer || !pitch)
        return finish(cudaErrorInvalidValue);
    return finish(call(legacy_driver().cuMemAllocPitch, as_device(pointer), pitch, width, height, 4u));
}

RUNTIME_CALL cudaMallocManaged(void **pointer, size_t size, unsigned int flags)
{
    return finish(call(legacy_driver().cuMemAllocManaged, as_device(pointer), size, flags));
}

RUNTIME_CALL cudaMallocHost(void **pointer, size_t size)
{
    if (size == 0 || !pointer)
        return finish(nothing(pointer));
    return finish(call(legacy_driver().cuMemAllocHost, pointer, size));
}

RUNTIME_CALL cudaHostAlloc(void **pointer, size_t size, unsigned int flags)
{
    if (size == 0 || !pointer)
        return finish(nothing(pointer));
    return finish(call(legacy_driver().cuMemHostAlloc, pointer, size, flags));
}

RUNTIME_CALL cudaFree(void *pointer)
{
    return finish(call(legacy_driver().cuMemFree, device(pointer)));
}
RUNTIME_CALL cudaFreeHost(void *pointer)
{
    return finish(pointer ? call(legacy_driver().cuMemFreeHost, pointer) : cudaSuccess);
}

RUNTIME_CALL cudaHostRegister(void *pointer, size_t size, unsigned int flags)
{
    return finish(call(legacy_driver().cuMemHostRegister, pointer, size, flags));
}
RUNTIME_CALL cudaHostUnregister(void *pointer)
{
    return finish(call(legacy_driver().cuMemHostUnregister, pointer));
}
RUNTIME_CALL cudaHostGetDevicePointer(void **result, void *pointer, unsigned int flags)
{
    return finish(call(legacy_driver().cuMemHostGetDevicePointer, as_device(result), pointer, flags));
}
RUNTIME_CALL cudaHostGetFlags(unsigned int *flags, void *pointer)
{
    return finish(call(legacy_driver().cuMemHostGetFlags, flags, pointer));
}
RUNTIME_CALL cudaMemGetInfo(size_t *free, size_t *total)
{
    return finish(call(legacy_driver().cuMemGetInfo, free, total));
}

RUNTIME_CALL_PER_STREAM(cudaMallocAsync, ptsz, (void **pointer, size_t size, cudaStream_t stream),
                        call(driver.cuMemAllocAsync, as_device(pointer), size, stream_of(stream)))
RUNTIME_CALL_PER_STREAM(cudaMallocFromPoolAsync, ptsz,
                        (void **pointer, size_t size, cudaMemPool_t pool, cudaStream_t stream),
                        call(driver.cuMemAllocFromPoolAsync, as_device(pointer), size,
                             reinterpret_cast<CUmemoryPool>(pool), stream_of(stream)))
RUNTIME_CALL_PER_STREAM(cudaFreeAsync, ptsz, (void *pointer, cudaStream_t stream),
                        call(driver.cuMemFreeAsync, device(pointer), stream_of(stream)))

RUNTIME_CALL_PER_STREAM(cudaMemcpy, ptds, (void *to, const void *from, size_t bytes, cudaMemcpyKind kind),
                        copy(driver, to, from, bytes, kind))
RUNTIME_CALL_PER_STREAM(cudaMemcpyAsync, ptsz,
                        (void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream),
                        copy_async(driver, to, from, bytes, kind, stream))
RUNTIME_CALL_PER_STREAM(cudaMemcpy2D, ptds,
                        (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                         cudaMemcpyKind kind),
                        copy_2d(driver, to, to_pitch, from, from_pitch, width, height, kind))
RUNTIME_CALL_PER_STREAM(cudaMemcpy2DAsync, ptsz,
                        (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                         cudaMemcpyKind kind, cudaStream_t stream),
                        copy_2d_async(driver, to, to_pitch, from, from_pitch, width, height, kind, stream))

RUNTIME_CALL_PER_STREAM(cudaMemset, ptds, (void *pointer, int value, size_t bytes),
                        call(driver.cuMemsetD8, device(pointer), static_cast<unsigned char>(value), bytes))
RUNTIME_CALL_PER_STREAM(cudaMemsetAsync, ptsz, (void *pointer, int value, size_t bytes, cudaStream_t stream),
                        call(driver.cuMemsetD8Async, device(pointer), static_cast<unsigned char>(value), bytes,
                             stream_of(stream)))
RUNTIME_CALL_PER_STREAM(cudaMemset2D, ptds, (void *pointer, size_t pitch, int value, size_t width, size_t height),
                        call(driver.cuMemsetD2D8, device(pointer), pitch, static_cast<unsigned char>(value), width,
                             height))
RUNTIME_CALL_PER_STREAM(cudaMemset2DAsync, ptsz,
                        (void *pointer, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream),
                        call(driver.cuMemsetD2D8Async, device(pointer), pitch, static_cast<unsigned char>(value), width,
                             height, stream_of(stream)))

RUNTIME_CALL cudaPointerGetAttributes(cudaPointerAttributes *result, const void *pointer)
{
    if (!result)
        return finish(cudaErrorInvalidValue);
    unsigned driver_type = 0, managed = 0;
    int ordinal = -2;
    CUdeviceptr device_pointer = 0;
    void *host_pointer = nullptr;
    CUpointer_attribute wanted[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                                    CU_POINTER_ATTRIBUTE_HOST_POINTER};
    void *values[] = {&driver_type, &managed, &ordinal, &device_pointer, &host_pointer};
    cudaError_t error = call(legacy_driver().cuPointerGetAttributes, 5u, wanted, values, device(pointer));
    if (error != cudaSuccess)
        return finish(error);
    std::memset(result, 0, sizeof *result);
    result->type = type_of(driver_type, managed);
    result->device = ordinal;
    result->devicePointer = reinterpret_cast<void *>(device_pointer);
    result->hostPointer = result->type == cudaMemoryTypeUnregistered ? const_cast<void *>(pointer) : host_pointer;
    return cudaSuccess;
}

/* Both enumerations use the same numbers (driver_types.h, cuda.h). */
static CUmemLocation location_of(cudaMemLocation location)
{
    CUmemLocation result;
    std::memset(&result, 0, sizeof result);
    result.type = static_cast<CUmemLocationType>(location.type);
    result.id = location.id;
    return result;
}

RUNTIME_CALL_PER_STREAM(cudaMemPrefetchAsync, ptsz,
                        (const void *pointer, size_t bytes, cudaMemLocation location, unsigned int flags,
                         cudaStream_t stream),
                        call(driver.cuMemPrefetchAsync, device(pointer), bytes, location_of(location), flags,
                             stream_of(stream)))
RUNTIME_CALL_PER_STREAM(cudaStreamAttachMemAsync, ptsz,
                        (cudaStream_t stream, void *pointer, size_t bytes, unsigned int flags),
                        call(driver.cuStreamAttachMemAsync, stream_of(stream), device(pointer), bytes, flags))
RUNTIME_CALL cudaMemAdvise(const void *pointer, size_t bytes, cudaMemoryAdvise advice, cudaMemLocation location)
{
    return finish(call(legacy_driver().cuMemAdvise, device(pointer), bytes, static_cast<CUmem_advise>(advice),
                       location_of(location)));
}
