/* cuMemcpy and its relatives, which copy one row of bytes. */
#include "foundation/configuration.h"
#include "stream_copy.h"

using namespace vgpu;

namespace
{

constexpr bool wait = true;
constexpr bool no_wait = false;

CUresult copy_row(CUstream handle, DefaultStream default_stream, const CopySide &destination, const CopySide &source,
                  std::size_t bytes, bool synchronous)
{
    Stream *stream;
    CUresult result = enter(handle, default_stream, stream, Capturing::allowed);
    return result != CUDA_SUCCESS ? result : copy(*stream, destination, source, {bytes, 1, 1}, synchronous);
}

CUresult host_to_device(CUstream handle, DefaultStream default_stream, CUdeviceptr destination, const void *source,
                        std::size_t bytes, bool synchronous)
{
    CUresult state = enter();
    if (state != CUDA_SUCCESS)
        return state;
    CopySide to;
    CUresult known = device_side(destination, to);
    if (bytes > 0 && (known != CUDA_SUCCESS || !source))
        return CUDA_ERROR_INVALID_VALUE;
    return copy_row(handle, default_stream, to, host_side(source), bytes, synchronous);
}

CUresult device_to_host(CUstream handle, DefaultStream default_stream, void *destination, CUdeviceptr source,
                        std::size_t bytes, bool synchronous)
{
    CUresult state = enter();
    if (state != CUDA_SUCCESS)
        return state;
    CopySide from;
    CUresult known = device_side(source, from);
    if (bytes > 0 && (known != CUDA_SUCCESS || !destination))
        return CUDA_ERROR_INVALID_VALUE;
    return copy_row(handle, default_stream, host_side(destination), from, bytes, synchronous);
}

CUresult device_to_device(CUstream handle, DefaultStream default_stream, CUdeviceptr destination, CUdeviceptr source,
                          std::size_t bytes, bool synchronous)
{
    CUresult state = enter();
    if (state != CUDA_SUCCESS)
        return state;
    CopySide to, from;
    if ((device_side(destination, to) != CUDA_SUCCESS || device_side(source, from) != CUDA_SUCCESS) && bytes > 0)
        return CUDA_ERROR_INVALID_VALUE;
    return copy_row(handle, default_stream, to, from, bytes, synchronous);
}

bool known(CUcontext destination, CUcontext source)
{
    return find_context(destination) && find_context(source);
}

/* Follows all earlier work of the three contexts and precedes their later work (CUDA Driver API, cuMemcpyPeer). Does
 * not wait. */
CUresult peer_to_peer(DefaultStream default_stream, CUdeviceptr destination, CUcontext destination_context,
                      CUdeviceptr source, CUcontext source_context, std::size_t bytes)
{
    Stream *stream;
    CUresult result = enter(nullptr, default_stream, stream);
    if (result != CUDA_SUCCESS || bytes == 0)
        return result;
    Context *contexts[] = {stream->context, find_context(destination_context), find_context(source_context)};
    if (!contexts[1] || !contexts[2])
        return CUDA_ERROR_INVALID_CONTEXT;
    CopySide to, from;
    if (device_side(destination, to) != CUDA_SUCCESS || device_side(source, from) != CUDA_SUCCESS ||
        check_copy(to, from, {bytes, 1, 1}) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_VALUE;
    CallCost cost(microseconds(configuration().call_copy));
    OperationReference operation = copy_operation(stream->context, to, from, {bytes, 1, 1});
    std::lock_guard<std::mutex> lock(scheduler().mutex);
    std::vector<OperationReference> earlier;
    for (Context *context : contexts) {
        for (OperationReference &one : context->outstanding())
            earlier.push_back(std::move(one));
    }
    enqueue(*stream, operation, earlier);
    for (Context *context : contexts)
        context->legacy.last = operation;
    return stream->context->error;
}

/* With unified addressing, the two addresses decide what kind of copy it is. */
CUresult any_to_any(CUstream handle, DefaultStream default_stream, CUdeviceptr destination, CUdeviceptr source,
                    std::size_t bytes, bool synchronous)
{
    if (bytes > 0 && (!destination || !source))
        return CUDA_ERROR_INVALID_VALUE;
    return copy_row(handle, default_stream, host_side(reinterpret_cast<void *>(destination)),
                    host_side(reinterpret_cast<const void *>(source)), bytes, synchronous);
}

} // namespace

DRIVER_CALL_PER_STREAM(cuMemcpyHtoD_v2, ptds, (CUdeviceptr destination, const void *source, size_t bytes),
                       host_to_device(nullptr, default_stream, destination, source, bytes, wait))
DRIVER_CALL_PER_STREAM(cuMemcpyHtoDAsync_v2, ptsz,
                       (CUdeviceptr destination, const void *source, size_t bytes, CUstream stream),
                       host_to_device(stream, default_stream, destination, source, bytes, no_wait))
DRIVER_CALL_PER_STREAM(cuMemcpyDtoH_v2, ptds, (void *destination, CUdeviceptr source, size_t bytes),
                       device_to_host(nullptr, default_stream, destination, source, bytes, wait))
DRIVER_CALL_PER_STREAM(cuMemcpyDtoHAsync_v2, ptsz,
                       (void *destination, CUdeviceptr source, size_t bytes, CUstream stream),
                       device_to_host(stream, default_stream, destination, source, bytes, no_wait))
DRIVER_CALL_PER_STREAM(cuMemcpyDtoD_v2, ptds, (CUdeviceptr destination, CUdeviceptr source, size_t bytes),
                       device_to_device(nullptr, default_stream, destination, source, bytes, wait))
DRIVER_CALL_PER_STREAM(cuMemcpyDtoDAsync_v2, ptsz,
                       (CUdeviceptr destination, CUdeviceptr source, size_t bytes, CUstream stream),
                       device_to_device(stream, default_stream, destination, source, bytes, no_wait))
DRIVER_CALL_PER_STREAM(cuMemcpy, ptds, (CUdeviceptr destination, CUdeviceptr source, size_t bytes),
                       any_to_any(nullptr, default_stream, destination, source, bytes, wait))
DRIVER_CALL_PER_STREAM(cuMemcpyAsync, ptsz,
                       (CUdeviceptr destination, CUdeviceptr source, size_t bytes, CUstream stream),
                       any_to_any(stream, default_stream, destination, source, bytes, no_wait))

DRIVER_CALL_PER_STREAM(cuMemcpyPeer, ptds,
                       (CUdeviceptr destination, CUcontext to, CUdeviceptr source, CUcontext from, size_t bytes),
                       peer_to_peer(default_stream, destination, to, source, from, bytes))
DRIVER_CALL_PER_STREAM(cuMemcpyPeerAsync, ptsz,
                       (CUdeviceptr destination, CUcontext to, CUdeviceptr source, CUcontext from, size_t bytes,
                        CUstream stream),
                       known(to, from) ? device_to_device(stream, default_stream, destination, source, bytes, no_wait)
                                       : CUDA_ERROR_INVALID_CONTEXT)
