/* Peer access: whether one device can reach another's memory directly. All devices can. */
#include <mutex>

#include "context.h"

using namespace vgpu;

namespace
{

CUresult check(CUdevice device, CUdevice peer)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    return is_device(device) && is_device(peer) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

/* Finds the calling thread's context and the named peer. */
CUresult both(CUcontext handle, Context *&context, Context *&peer)
{
    CUresult result = enter(context);
    if (result != CUDA_SUCCESS)
        return result;
    peer = find_context(handle);
    return peer && peer != context ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

} // namespace

DRIVER_CALL(cuDeviceCanAccessPeer)(int *can, CUdevice device, CUdevice peer)
{
    CUresult result = check(device, peer);
    if (result == CUDA_SUCCESS)
        *can = device != peer;
    return result;
}

DRIVER_CALL(cuDeviceGetP2PAttribute)(int *value, CUdevice_P2PAttribute attribute, CUdevice device, CUdevice peer)
{
    CUresult result = check(device, peer);
    if (result != CUDA_SUCCESS)
        return result;
    if (!value || device == peer)
        return device == peer ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_VALUE;
    *value = attribute == CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED;
    return CUDA_SUCCESS;
}

DRIVER_CALL(cuCtxEnablePeerAccess)(CUcontext handle, unsigned int flags)
{
    Context *context, *peer;
    CUresult result = both(handle, context, peer);
    if (result != CUDA_SUCCESS)
        return result;
    if (flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (peer->device == context->device)
        return CUDA_ERROR_INVALID_DEVICE;
    std::lock_guard<std::mutex> lock(scheduler().mutex);
    return context->peers.emplace(peer->id, peer->device).second ? CUDA_SUCCESS
                                                                 : CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
}

DRIVER_CALL(cuCtxDisablePeerAccess)(CUcontext handle)
{
    Context *context, *peer;
    CUresult result = both(handle, context, peer);
    if (result != CUDA_SUCCESS)
        return result;
    std::lock_guard<std::mutex> lock(scheduler().mutex);
    return context->peers.erase(peer->id) != 0 ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}
