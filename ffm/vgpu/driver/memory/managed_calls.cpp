/* Managed memory: hints about where it should reside. The virtual GPU can access it anywhere, so hints only take
 * time. */
#include "contexts/context.h"
#include "foundation/configuration.h"
#include "memory.h"

using namespace vgpu;

namespace
{

CUresult check_range(CUdeviceptr address, std::size_t bytes)
{
    GpuRange range = gpu_range(address);
    return range.kind == MemoryKind::managed && bytes > 0 && bytes <= range.size ? CUDA_SUCCESS
                                                                                 : CUDA_ERROR_INVALID_VALUE;
}

/* Takes as long as moving all pages would, even if they are already there. */
CUresult prefetch(CUstream handle, DefaultStream default_stream, CUdeviceptr address, std::size_t bytes, bool to_device)
{
    Stream *stream;
    CUresult result = enter(handle, default_stream, stream);
    if (result == CUDA_SUCCESS)
        result = check_range(address, bytes);
    if (result != CUDA_SUCCESS)
        return result;
    const Configuration &settings = configuration();
    CallCost cost(microseconds(settings.call_copy));
    auto operation = std::make_shared<Operation>();
    operation->engine = to_device ? Engine::host_to_device : Engine::device_to_host;
    operation->duration = microseconds(settings.copy_latency) +
                          transfer_time(static_cast<double>(bytes),
                                        to_device ? settings.host_to_device_pinned : settings.device_to_host_pinned);
    submit(*stream, operation);
    return CUDA_SUCCESS;
}

CUresult prefetch_to(CUstream stream, DefaultStream default_stream, CUdeviceptr address, std::size_t bytes,
                     CUmemLocation location, unsigned flags)
{
    bool to_device = location.type == CU_MEM_LOCATION_TYPE_DEVICE;
    if (flags != 0 || (to_device && !is_device(location.id)))
        return CUDA_ERROR_INVALID_VALUE;
    return prefetch(stream, default_stream, address, bytes, to_device);
}

CUresult attach(CUstream handle, DefaultStream default_stream, CUdeviceptr address)
{
    Stream *stream;
    CUresult result = enter(handle, default_stream, stream);
    if (result == CUDA_SUCCESS)
        result = check_range(address, 1);
    if (result == CUDA_SUCCESS)
        submit(*stream, std::make_shared<Operation>());
    return result;
}

CUresult advise(CUdeviceptr address, std::size_t bytes)
{
    Context *context;
    CUresult result = enter(context);
    return result != CUDA_SUCCESS ? result : check_range(address, bytes);
}

} // namespace

DRIVER_CALL_PER_STREAM(cuMemPrefetchAsync_v2, ptsz,
                       (CUdeviceptr address, size_t bytes, CUmemLocation location, unsigned int flags, CUstream stream),
                       prefetch_to(stream, default_stream, address, bytes, location, flags))
DRIVER_CALL_PER_STREAM(cuMemPrefetchAsync, ptsz, (CUdeviceptr address, size_t bytes, CUdevice device, CUstream stream),
                       prefetch(stream, default_stream, address, bytes, device != CU_DEVICE_CPU))
DRIVER_CALL_PER_STREAM(cuStreamAttachMemAsync, ptsz, (CUstream stream, CUdeviceptr address, size_t, unsigned int),
                       attach(stream, default_stream, address))
DRIVER_CALL(cuMemAdvise_v2)(CUdeviceptr address, size_t bytes, CUmem_advise, CUmemLocation)
{
    return advise(address, bytes);
}
DRIVER_CALL(cuMemAdvise)(CUdeviceptr address, size_t bytes, CUmem_advise, CUdevice)
{
    return advise(address, bytes);
}
