/* cuInit and cuCtx…: initialization, and the current context of each thread. */
#include <cstdio>
#include <mutex>
#include <pthread.h>
#include <string>
#include <vector>

#include "context.h"
#include "foundation/configuration.h"
#include "foundation/driver_state.h"
#include "foundation/thread_state.h"
#include "wait.h"

int vgpu_state = 0;

using namespace vgpu;

namespace
{

std::mutex initialise_mutex;
bool initialised_flag = false;

ThreadState<std::vector<CUcontext>> context_stacks;

std::vector<CUcontext> &context_stack()
{
    return context_stacks.here();
}

void refuse_in_child()
{
    vgpu_state = VGPU_UNUSABLE;
}

CUcontext handle_of(Context *context)
{
    return reinterpret_cast<CUcontext>(context);
}

CUresult create(CUcontext *handle, unsigned flags, CUdevice device)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!handle)
        return CUDA_ERROR_INVALID_VALUE;
    if (!is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    *handle = handle_of(create_context(device, flags));
    context_stack().push_back(*handle);
    return CUDA_SUCCESS;
}

CUresult destroy(CUcontext handle)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    Context *context = find_context(handle);
    if (!context || context->primary)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!context_stack().empty() && context_stack().back() == handle)
        context_stack().pop_back();
    destroy_context(context);
    return CUDA_SUCCESS;
}

CUresult detach(CUcontext handle)
{
    Context *context;
    CUresult result = enter(context);
    if (result != CUDA_SUCCESS)
        return result;
    if (handle_of(context) != handle || (context->primary && context->uses == 1))
        return CUDA_ERROR_INVALID_CONTEXT;
    return --context->uses > 0 ? CUDA_SUCCESS : destroy(handle);
}

CUresult synchronize(Context &context)
{
    if (context.capturing > 0)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    CallCost cost(microseconds(configuration().call_synchronize));
    wait_for_context(context);
    context.printed.show();
    return context.error;
}

CUresult push(CUcontext handle)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!revived_context(handle))
        return CUDA_ERROR_INVALID_CONTEXT;
    context_stack().push_back(handle);
    return CUDA_SUCCESS;
}

CUresult pop(CUcontext *handle)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (context_stack().empty())
        return CUDA_ERROR_INVALID_CONTEXT;
    if (handle)
        *handle = context_stack().back();
    context_stack().pop_back();
    return CUDA_SUCCESS;
}

} // namespace

bool vgpu::initialised()
{
    return initialised_flag;
}

Context *vgpu::current_context()
{
    return context_stack().empty() ? nullptr : find_context(context_stack().back());
}

DRIVER_CALL(cuInit)(unsigned int flags)
{
    if (flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    std::lock_guard<std::mutex> lock(initialise_mutex);
    if (initialised_flag)
        return CUDA_SUCCESS;
    std::string error;
    if (!load_configuration(error)) {
        std::fprintf(stderr, "vgpu: %s\n", error.c_str());
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!find_visible_devices())
        return CUDA_ERROR_NO_DEVICE;
    pthread_atfork(nullptr, nullptr, refuse_in_child);
    initialised_flag = true;
    return CUDA_SUCCESS;
}

DRIVER_CALL(cuDriverGetVersion)(int *version)
{
    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    *version = 13000;
    return CUDA_SUCCESS;
}

DRIVER_CALL(cuCtxCreate_v2)(CUcontext *context, unsigned int flags, CUdevice device)
{
    return create(context, flags, device);
}
DRIVER_CALL(cuCtxCreate_v3)(CUcontext *context, CUexecAffinityParam *, int count, unsigned int flags, CUdevice device)
{
    return count != 0 ? CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY : create(context, flags, device);
}
DRIVER_CALL(cuCtxCreate_v4)(CUcontext *context, CUctxCreateParams *parameters, unsigned int flags, CUdevice device)
{
    if (parameters && (parameters->numExecAffinityParams != 0 || parameters->cigParams))
        return CUDA_ERROR_NOT_SUPPORTED;
    return create(context, flags, device);
}
DRIVER_CALL(cuCtxDestroy_v2)(CUcontext context)
{
    return destroy(context);
}
DRIVER_CALL(cuCtxDestroy)(CUcontext context)
{
    return destroy(context);
}

DRIVER_CALL(cuCtxAttach)(CUcontext *handle, unsigned int flags)
{
    Context *context;
    CUresult result = enter(context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!handle || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    ++context->uses;
    *handle = handle_of(context);
    return CUDA_SUCCESS;
}
DRIVER_CALL(cuCtxDetach)(CUcontext handle)
{
    return detach(handle);
}

DRIVER_CALL(cuCtxSynchronize)()
{
    Context *context;
    CUresult result = enter(context);
    return result != CUDA_SUCCESS ? result : synchronize(*context);
}
DRIVER_CALL(cuCtxSynchronize_v2)(CUcontext handle)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    Context *context = handle ? find_context(handle) : current_context();
    if (!context)
        return CUDA_ERROR_INVALID_CONTEXT;
    return synchronize(*context);
}

DRIVER_CALL(cuCtxPushCurrent_v2)(CUcontext context)
{
    return push(context);
}
DRIVER_CALL(cuCtxPushCurrent)(CUcontext context)
{
    return push(context);
}
DRIVER_CALL(cuCtxPopCurrent_v2)(CUcontext *context)
{
    return pop(context);
}
DRIVER_CALL(cuCtxPopCurrent)(CUcontext *context)
{
    return pop(context);
}

DRIVER_CALL(cuCtxSetCurrent)(CUcontext handle)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (handle && !revived_context(handle))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!context_stack().empty())
        context_stack().pop_back();
    if (handle)
        context_stack().push_back(handle);
    return CUDA_SUCCESS;
}

DRIVER_CALL(cuCtxGetCurrent)(CUcontext *handle)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!handle)
        return CUDA_ERROR_INVALID_VALUE;
    *handle = handle_of(current_context());
    return CUDA_SUCCESS;
}

DRIVER_CALL(cuCtxGetDevice)(CUdevice *device)
{
    Context *context;
    CUresult result = enter(context);
    if (result == CUDA_SUCCESS)
        *device = context->device;
    return result;
}

DRIVER_CALL(cuCtxGetFlags)(unsigned int *flags)
{
    Context *context;
    CUresult result = enter(context);
    if (result == CUDA_SUCCESS)
        *flags = context->flags;
    return result;
}

DRIVER_CALL(cuCtxGetId)(CUcontext handle, unsigned long long *id)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    Context *context = handle ? find_context(handle) : current_context();
    if (!context)
        return CUDA_ERROR_INVALID_CONTEXT;
    *id = context->id;
    return CUDA_SUCCESS;
}

DRIVER_CALL(cuCtxGetApiVersion)(CUcontext, unsigned int *version)
{
    CUresult result = enter();
    if (result == CUDA_SUCCESS)
        *version = 3020;
    return result;
}

/* Of the limits, only that of the stack has an effect, on launches. Cache preferences are ignored. */
DRIVER_CALL(cuCtxGetLimit)(size_t *value, CUlimit limit)
{
    Context *context;
    CUresult result = enter(context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!value || limit < 0 || limit >= CU_LIMIT_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    auto set = context->limits.find(limit);
    *value = set != context->limits.end() ? set->second : limit == CU_LIMIT_MALLOC_HEAP_SIZE ? 8u << 20 : 1024;
    return CUDA_SUCCESS;
}

DRIVER_CALL(cuCtxSetLimit)(CUlimit limit, size_t value)
{
    Context *context;
    CUresult result = enter(context);
    if (result != CUDA_SUCCESS)
        return result;
    if (limit < 0 || limit >= CU_LIMIT_MAX)
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    if (limit == CU_LIMIT_STACK_SIZE) // an H200 waits here too
        wait_for_context(*context);
    context->limits[limit] = value;
    return CUDA_SUCCESS;
}

DRIVER_CALL(cuCtxGetCacheConfig)(CUfunc_cache *config)
{
    Context *context;
    CUresult result = enter(context);
    if (result == CUDA_SUCCESS)
        *config = CU_FUNC_CACHE_PREFER_NONE;
    return result;
}

DRIVER_CALL(cuCtxSetCacheConfig)(CUfunc_cache)
{
    Context *context;
    return enter(context);
}
