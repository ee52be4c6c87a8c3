#include "node_work.h"

#include <type_traits>

#include "code/launch.h"
#include "memory/set.h"

namespace vgpu
{

namespace
{

/* The launch that a node describes. `parameters` may be either version of the structure. */
template <typename Parameters> CUresult launch_work(const Parameters *parameters, NodeWork &work)
{
    if (!parameters)
        return CUDA_ERROR_INVALID_VALUE;
    const void *function = parameters->func;
    if constexpr (std::is_same_v<Parameters, CUDA_KERNEL_NODE_PARAMS_v2>)
        function = function ? function : parameters->kern;
    Kernel *kernel = find_kernel(function);
    if (!kernel)
        return CUDA_ERROR_INVALID_HANDLE;
    if (parameters->extra)
        return CUDA_ERROR_NOT_SUPPORTED;
    const LaunchShape shape = {{parameters->gridDimX, parameters->gridDimY, parameters->gridDimZ},
                               {parameters->blockDimX, parameters->blockDimY, parameters->blockDimZ},
                               parameters->sharedMemBytes,
                               false};
    CUresult result = check_launch(*kernel, shape, parameters->kernelParams);
    if (result == CUDA_SUCCESS)
        work = KernelNode(*kernel, shape, parameters->kernelParams);
    return result;
}

} // namespace

CUresult copy_work(const CUDA_MEMCPY3D *box, NodeWork &work)
{
    if (!box)
        return CUDA_ERROR_INVALID_VALUE;
    CopyNode copy;
    CUresult result = describe(*box, copy.destination, copy.source, copy.shape);
    if (result == CUDA_SUCCESS)
        result = check_copy(copy.destination, copy.source, copy.shape);
    if (result == CUDA_SUCCESS)
        work = copy;
    return result;
}

CUresult set_work(const CUDA_MEMSET_NODE_PARAMS *parameters, NodeWork &work)
{
    if (!parameters)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_MEMSET_NODE_PARAMS set = *parameters;
    CUresult result = check_set(set);
    if (result == CUDA_SUCCESS)
        work = SetNode{set};
    return result;
}

CUresult kernel_work(const CUDA_KERNEL_NODE_PARAMS_v1 *parameters, NodeWork &work)
{
    return launch_work(parameters, work);
}

CUresult kernel_work(const CUDA_KERNEL_NODE_PARAMS_v2 *parameters, NodeWork &work)
{
    return launch_work(parameters, work);
}

CUresult child_work(const Graph &parent, CUgraph child, NodeWork &work)
{
    std::shared_ptr<Graph> inner = find_graph(child);
    if (!inner || inner.get() == &parent)
        return CUDA_ERROR_INVALID_VALUE;
    if (has_memory(*inner))
        return CUDA_ERROR_NOT_SUPPORTED;
    std::shared_ptr<Graph> copy = copy_of(*inner);
    if (!copy)
        return CUDA_ERROR_INVALID_VALUE;
    work = ChildNode{copy};
    return CUDA_SUCCESS;
}

} // namespace vgpu
