/* cuDevicePrimaryCtx…: the context that the runtime and the libraries share. */
#include <map>
#include <mutex>

#include "context.h"

using namespace vgpu;

namespace
{

std::mutex primary_mutex;

/* How often a device's primary context is retained, and its flags. Guarded by primary_mutex. */
struct Retained {
    int users = 0;
    unsigned flags = 0;
};

/* Never destroyed: runtimes release their contexts during exit, even after this library's destructors have run. */
Retained &retained(CUdevice device)
{
    static auto *instance = new std::map<CUdevice, Retained>;
    return (*instance)[device];
}

/* Destroys the primary context once its work is done. Its users must still release it. */
CUresult reset_primary(CUdevice device)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    if (Context *context = primary_context(device, false))
        destroy_context(context);
    return CUDA_SUCCESS;
}

CUresult release_primary(CUdevice device)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    {
        std::lock_guard<std::mutex> lock(primary_mutex);
        int &users = retained(device).users;
        if (users == 0)
            return CUDA_ERROR_INVALID_CONTEXT;
        if (--users > 0)
            return CUDA_SUCCESS;
    }
    return reset_primary(device);
}

CUresult set_primary_flags(CUdevice device, unsigned flags)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    std::lock_guard<std::mutex> lock(primary_mutex);
    retained(device).flags = flags;
    if (Context *context = primary_context(device, false))
        context->flags = flags;
    return CUDA_SUCCESS;
}

} // namespace

DRIVER_CALL(cuDevicePrimaryCtxRetain)(CUcontext *handle, CUdevice device)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!handle)
        return CUDA_ERROR_INVALID_VALUE;
    if (!is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    Context *context = primary_context(device, true);
    std::lock_guard<std::mutex> lock(primary_mutex);
    context->flags = retained(device).flags;
    ++retained(device).users;
    *handle = reinterpret_cast<CUcontext>(context);
    return CUDA_SUCCESS;
}

DRIVER_CALL(cuDevicePrimaryCtxRelease_v2)(CUdevice device)
{
    return release_primary(device);
}
DRIVER_CALL(cuDevicePrimaryCtxRelease)(CUdevice device)
{
    return release_primary(device);
}
DRIVER_CALL(cuDevicePrimaryCtxReset_v2)(CUdevice device)
{
    return reset_primary(device);
}
DRIVER_CALL(cuDevicePrimaryCtxReset)(CUdevice device)
{
    return reset_primary(device);
}
DRIVER_CALL(cuDevicePrimaryCtxSetFlags_v2)(CUdevice device, unsigned int flags)
{
    return set_primary_flags(device, flags);
}
DRIVER_CALL(cuDevicePrimaryCtxSetFlags)(CUdevice device, unsigned int flags)
{
    return set_primary_flags(device, flags);
}

DRIVER_CALL(cuDevicePrimaryCtxGetState)(CUdevice device, unsigned int *flags, int *active)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    Context *context = primary_context(device, false);
    std::lock_guard<std::mutex> lock(primary_mutex);
    if (flags)
        *flags = retained(device).flags;
    if (active)
        *active = context != nullptr;
    return CUDA_SUCCESS;
}
