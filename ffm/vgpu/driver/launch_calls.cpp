/* cuLaunchKernel and cuLaunchKernelEx. */
#include <algorithm>

#include "configuration.h"
#include "graph.h"
#include "kernel_arguments.h"
#include "launch.h"
#include "limits.h"

using namespace vgpu;

namespace
{

constexpr std::uint32_t largest_grid[3] = {2147483647, 65535, 65535};
constexpr std::uint32_t largest_block[3] = {1024, 1024, 64};

/* Where each argument is in the packed buffer that `extra` names; false if `extra` is wrong or the buffer too short. */
bool unpack(const KernelEntry &entry, void *const *extra, std::vector<void *> &values)
{
    char *buffer = nullptr;
    std::size_t size = 0;
    for (; extra[0] != CU_LAUNCH_PARAM_END; extra += 2) {
        if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER)
            buffer = static_cast<char *>(extra[1]);
        else if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE)
            size = *static_cast<const std::size_t *>(extra[1]);
        else
            return false;
    }
    if (KernelArguments::packed_size(entry) > size || (entry.parameter_count > 0 && !buffer))
        return false;
    for (std::uint32_t index = 0; index < entry.parameter_count; ++index)
        values.push_back(buffer + entry.parameters[index].offset);
    return true;
}

CUresult launch_on(CUstream handle, DefaultStream default_stream, CUfunction function, const std::uint32_t grid[3],
                   const std::uint32_t block[3], void **arguments, void **extra)
{
    Stream *stream;
    CUresult result = enter(handle, default_stream, stream, Capturing::allowed);
    if (result != CUDA_SUCCESS)
        return result;
    Kernel *kernel = find_kernel(function);
    if (!kernel || stream->context != current_context())
        return CUDA_ERROR_INVALID_HANDLE;
    if (!extra)
        return launch(*stream, *kernel, grid, block, arguments);
    std::vector<void *> unpacked;
    if (arguments || !unpack(*kernel->entry, extra, unpacked))
        return CUDA_ERROR_INVALID_VALUE;
    return launch(*stream, *kernel, grid, block, unpacked.data());
}

CUresult launch_grid(CUstream stream, DefaultStream default_stream, CUfunction function, unsigned grid_x,
                     unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
                     void **arguments, void **extra)
{
    const std::uint32_t grid[3] = {grid_x, grid_y, grid_z};
    const std::uint32_t block[3] = {block_x, block_y, block_z};
    return launch_on(stream, default_stream, function, grid, block, arguments, extra);
}

/* Attributes that change when and where blocks run, but not what they do. */
bool is_hint(const CUlaunchAttribute &attribute)
{
    switch (attribute.id) {
    case CU_LAUNCH_ATTRIBUTE_IGNORE:
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION: /* the next kernel may start earlier */
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        return true;
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        return attribute.value.cooperative == 0;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        return attribute.value.clusterDim.x * attribute.value.clusterDim.y * attribute.value.clusterDim.z <= 1;
    default:
        return false;
    }
}

CUresult launch_configured(const CUlaunchConfig *config, DefaultStream default_stream, CUfunction function,
                           void **arguments, void **extra)
{
    if (!config)
        return CUDA_ERROR_INVALID_VALUE;
    CUevent recorded[2];
    unsigned events = 0;
    for (unsigned index = 0; index < config->numAttrs; ++index) {
        const CUlaunchAttribute &attribute = config->attrs[index];
        if (attribute.id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT && events < 2)
            recorded[events++] = attribute.value.programmaticEvent.event;
        else if (attribute.id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT && events < 2)
            recorded[events++] = attribute.value.launchCompletionEvent.event;
        else if (!is_hint(attribute))
            return CUDA_ERROR_NOT_SUPPORTED;
    }
    CUresult result =
        launch_grid(config->hStream, default_stream, function, config->gridDimX, config->gridDimY, config->gridDimZ,
                    config->blockDimX, config->blockDimY, config->blockDimZ, arguments, extra);
    for (unsigned index = 0; index < events && result == CUDA_SUCCESS; ++index) /* later than necessary */
        result = record_event(recorded[index], config->hStream, default_stream);
    return result;
}

} // namespace

CUresult vgpu::check_launch(const Kernel &kernel, const std::uint32_t grid[3], const std::uint32_t block[3],
                            void *const *arguments)
{
    double block_threads = 1;
    for (int axis = 0; axis < 3; ++axis) {
        if (grid[axis] == 0 || grid[axis] > largest_grid[axis] || block[axis] == 0 || block[axis] > largest_block[axis])
            return CUDA_ERROR_INVALID_VALUE;
        block_threads *= block[axis];
    }
    if (block_threads > threads_per_block || (kernel.entry->parameter_count > 0 && !arguments))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

OperationReference vgpu::launch_operation(Kernel &kernel, const std::uint32_t grid[3], const std::uint32_t block[3],
                                          void *const *arguments)
{
    double threads = 1;
    for (int axis = 0; axis < 3; ++axis)
        threads *= static_cast<double>(grid[axis]) * block[axis];
    auto operation = std::make_shared<Operation>();
    operation->engine = Engine::compute;
    operation->duration = configuration().kernel(kernel.entry->name).of(threads);
    operation->occupancy = std::min(1.0, threads / (configuration().multiprocessors * threads_per_multiprocessor));
    if (!kernel.entry->run)
        return operation;
    operation->estimate = &kernel.run_time;
    operation->size = static_cast<std::uint64_t>(threads);
    auto copied = std::make_shared<KernelArguments>(*kernel.entry, arguments, Pointers::translated);
    operation->work = [run = kernel.entry->run, copied, grid_x = grid[0], grid_y = grid[1], grid_z = grid[2],
                       block_x = block[0], block_y = block[1], block_z = block[2]] {
        const std::uint32_t grid_extents[3] = {grid_x, grid_y, grid_z};
        const std::uint32_t block_extents[3] = {block_x, block_y, block_z};
        run(grid_extents, block_extents, copied->pointers());
    };
    return operation;
}

CUresult vgpu::launch(Stream &stream, Kernel &kernel, const std::uint32_t grid[3], const std::uint32_t block[3],
                      void *const *arguments)
{
    CUresult valid = check_launch(kernel, grid, block, arguments);
    if (valid != CUDA_SUCCESS)
        return valid;
    CallCost cost(microseconds(configuration().call_launch));
    if (stream.capture)
        return capture(stream, KernelNode(kernel, grid, block, arguments));
    submit(stream, launch_operation(kernel, grid, block, arguments));
    return CUDA_SUCCESS;
}

DRIVER_CALL_PER_STREAM(cuLaunchKernel, ptsz,
                       (CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                        unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int, CUstream stream,
                        void **arguments, void **extra),
                       launch_grid(stream, default_stream, function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                                   arguments, extra))
DRIVER_CALL_PER_STREAM(cuLaunchKernelEx, ptsz,
                       (const CUlaunchConfig *config, CUfunction function, void **arguments, void **extra),
                       launch_configured(config, default_stream, function, arguments, extra))
