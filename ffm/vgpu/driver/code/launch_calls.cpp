/* cuLaunchKernel, cuLaunchKernelEx and cuLaunchCooperativeKernel. */
#include <algorithm>
#include <cstdio>

#include "foundation/configuration.h"
#include "foundation/device_limits.h"
#include "graphs/graph.h"
#include "kernel_arguments.h"
#include "launch.h"
#include "ptx/execution/grid.h"

using namespace vgpu;

namespace
{

constexpr std::uint32_t largest_grid[3] = {2147483647, 65535, 65535};
constexpr std::uint32_t largest_block[3] = {1024, 1024, 64};

/* Finds each argument in the packed buffer that `extra` names. Returns false if `extra` is invalid or the buffer is
 * too short. */
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

CUresult launch_on(CUstream handle, DefaultStream default_stream, CUfunction function, const LaunchShape &shape,
                   void **arguments, void **extra)
{
    Stream *stream;
    CUresult result = enter(handle, default_stream, stream, Capturing::allowed);
    if (result != CUDA_SUCCESS)
        return result;
    Kernel *kernel = find_kernel(function);
    if (!kernel || stream->context != current_context())
        return CUDA_ERROR_INVALID_HANDLE;
    if (!extra)
        return launch(*stream, *kernel, shape, arguments);
    std::vector<void *> unpacked;
    if (arguments || !unpack(*kernel->entry, extra, unpacked))
        return CUDA_ERROR_INVALID_VALUE;
    return launch(*stream, *kernel, shape, unpacked.data());
}

/* Hints change when and where blocks run, but not what they compute. */
bool is_hint(const CUlaunchAttribute &attribute)
{
    switch (attribute.id) {
    case CU_LAUNCH_ATTRIBUTE_IGNORE:
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION: /* lets the next kernel start earlier */
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        return true;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        return attribute.value.clusterDim.x * attribute.value.clusterDim.y * attribute.value.clusterDim.z <= 1;
    default:
        return false;
    }
}

void tell_refused(const CUlaunchAttribute &attribute)
{
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
        std::fprintf(stderr, "vgpu: a launch in clusters of %u by %u by %u blocks is refused: clusters are not there\n",
                     attribute.value.clusterDim.x, attribute.value.clusterDim.y, attribute.value.clusterDim.z);
    else
        std::fprintf(stderr, "vgpu: a launch with attribute %d (CUlaunchAttributeID) is refused: it is not there\n",
                     static_cast<int>(attribute.id));
}

CUresult launch_configured(const CUlaunchConfig *config, DefaultStream default_stream, CUfunction function,
                           void **arguments, void **extra)
{
    if (!config)
        return CUDA_ERROR_INVALID_VALUE;
    CUevent recorded[2];
    unsigned events = 0;
    bool cooperative = false;
    for (unsigned index = 0; index < config->numAttrs; ++index) {
        const CUlaunchAttribute &attribute = config->attrs[index];
        if (attribute.id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT && events < 2)
            recorded[events++] = attribute.value.programmaticEvent.event;
        else if (attribute.id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT && events < 2)
            recorded[events++] = attribute.value.launchCompletionEvent.event;
        else if (attribute.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
            cooperative = attribute.value.cooperative != 0;
        else if (!is_hint(attribute)) {
            tell_refused(attribute);
            return CUDA_ERROR_NOT_SUPPORTED;
        }
    }
    const LaunchShape shape = {{config->gridDimX, config->gridDimY, config->gridDimZ},
                               {config->blockDimX, config->blockDimY, config->blockDimZ},
                               config->sharedMemBytes,
                               cooperative};
    CUresult result = launch_on(config->hStream, default_stream, function, shape, arguments, extra);
    for (unsigned index = 0; index < events && result == CUDA_SUCCESS; ++index) /* a GPU may do so earlier */
        result = record_event(recorded[index], config->hStream, default_stream);
    return result;
}

/* Whether the kernel's own limits (.maxntid, .reqntid) allow such blocks. */
bool allows(const ptx::Code &code, const LaunchShape &shape)
{
    bool any = code.required_threads[0] == 0;
    std::uint32_t threads = shape.block[0] * shape.block[1] * shape.block[2];
    return threads <= code.maximum_threads && (any || std::equal(shape.block, shape.block + 3, code.required_threads));
}

/* Whether all blocks of the grid can run at the same time. */
bool fits_at_once(const ptx::Code &code, const LaunchShape &shape)
{
    int threads = static_cast<int>(shape.block[0] * shape.block[1] * shape.block[2]);
    double at_once = static_cast<double>(resident_blocks(threads, code.shared_size + shape.dynamic_shared)) *
                     configuration().multiprocessors;
    return static_cast<double>(shape.grid[0]) * shape.grid[1] * shape.grid[2] <= at_once;
}

/* Adds the stack size that the context asked for. */
LaunchShape with_stack(const Context &context, LaunchShape shape)
{
    auto asked = context.limits.find(CU_LIMIT_STACK_SIZE);
    if (asked != context.limits.end())
        shape.stack = std::min(asked->second, local_memory_per_thread);
    return shape;
}

/* The work of the launch, with a copy of the arguments. Pointers to host memory are translated to the GPU's view. */
std::function<void()> work_of(Context *context, Kernel &kernel, const LaunchShape &given, void *const *arguments)
{
    const LaunchShape shape = with_stack(*context, given);
    auto copied = std::make_shared<KernelArguments>(*kernel.entry, arguments, Pointers::translated);
    if (KernelRun run = kernel.entry->run)
        return [run, copied, shape] { run(shape.grid, shape.block, copied->pointers()); };
    const ptx::Code *code;
    const std::uint64_t *variables = nullptr;
    CUresult result = find_code(kernel, code);
    if (result == CUDA_SUCCESS && code)
        result = find_variables(*kernel.module, context->device, variables);
    if (result != CUDA_SUCCESS)
        context->error = result;
    if (result != CUDA_SUCCESS || !code)
        return nullptr;
    return [context, code, variables, copied, shape] {
        if (context->error != CUDA_SUCCESS)
            return;
        ptx::Arguments handed = {variables, copied->packed(), copied->size(), context->device};
        std::string printed;
        CUresult outcome = ptx::run(*code, shape, handed, configuration().time_limit, printed);
        context->printed.keep(printed);
        if (outcome != CUDA_SUCCESS)
            context->error = outcome;
    };
}

/* Loads the kernel's code at its first launch, as a driver does that loads lazily. That waits for all work of the
 * context (CUDA Programming Guide, "Lazy Loading": it "may require context synchronization"). */
void load(Context &context, Kernel &kernel)
{
    double cost = configuration().call_load_kernel;
    if (cost > 0)
        std::call_once(kernel.loaded, [&] {
            CallCost loading(microseconds(cost));
            wait_for_context(context);
        });
}

} // namespace

CUresult vgpu::check_launch(Kernel &kernel, const LaunchShape &shape, void *const *arguments)
{
    double block_threads = 1;
    for (int axis = 0; axis < 3; ++axis) {
        if (shape.grid[axis] == 0 || shape.grid[axis] > largest_grid[axis] || shape.block[axis] == 0 ||
            shape.block[axis] > largest_block[axis])
            return CUDA_ERROR_INVALID_VALUE;
        block_threads *= shape.block[axis];
    }
    if (block_threads > threads_per_block || (kernel.entry->parameter_count > 0 && !arguments))
        return CUDA_ERROR_INVALID_VALUE;
    const ptx::Code *code;
    CUresult result = find_code(kernel, code);
    if (result != CUDA_SUCCESS || !code)
        return result;
    auto asked = kernel.attributes.find(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
    std::size_t allowed = asked == kernel.attributes.end()
                              ? shared_memory_unasked
                              : code->shared_size + static_cast<std::size_t>(asked->second);
    if (code->shared_size + shape.dynamic_shared > allowed || !allows(*code, shape))
        return CUDA_ERROR_INVALID_VALUE;
    return shape.cooperative && !fits_at_once(*code, shape) ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE : CUDA_SUCCESS;
}

OperationReference vgpu::launch_operation(Context *context, Kernel &kernel, const LaunchShape &shape,
                                          void *const *arguments)
{
    double blocks = 1;
    double block_threads = 1;
    for (int axis = 0; axis < 3; ++axis) {
        blocks *= shape.grid[axis];
        block_threads *= shape.block[axis];
    }
    const double threads = blocks * block_threads;
    const double room = configuration().multiprocessors * threads_per_multiprocessor;
    auto operation = std::make_shared<Operation>();
    operation->engine = Engine::compute;
    operation->occupancy = std::min(1.0, threads / room);
    operation->least_room = shape.cooperative ? operation->occupancy : block_threads / room;
    operation->work = work_of(context, kernel, shape, arguments);
    bool measured = operation->work && configuration().device_time == DeviceTime::measured;
    operation->duration = measured ? 0 : configuration().kernel(kernel.entry->name).of(threads);
    if (operation->work) {
        operation->estimate = &kernel.run_time;
        operation->size = static_cast<std::uint64_t>(threads);
    }
    return operation;
}

CUresult vgpu::launch(Stream &stream, Kernel &kernel, const LaunchShape &shape, void *const *arguments)
{
    CUresult valid = check_launch(kernel, shape, arguments);
    if (valid != CUDA_SUCCESS)
        return valid;
    CallCost cost(microseconds(configuration().call_launch));
    if (stream.capture)
        return capture(stream, KernelNode(kernel, shape, arguments));
    load(*stream.context, kernel);
    stream.context->printed.show();
    submit(stream, launch_operation(stream.context, kernel, shape, arguments));
    return CUDA_SUCCESS;
}

DRIVER_CALL_PER_STREAM(cuLaunchKernel, ptsz,
                       (CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                        unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared_bytes,
                        CUstream stream, void **arguments, void **extra),
                       launch_on(stream, default_stream, function,
                                 LaunchShape{
                                     {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes, false},
                                 arguments, extra))
DRIVER_CALL_PER_STREAM(cuLaunchCooperativeKernel, ptsz,
                       (CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                        unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared_bytes,
                        CUstream stream, void **arguments),
                       launch_on(stream, default_stream, function,
                                 LaunchShape{{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes, true},
                                 arguments, nullptr))
DRIVER_CALL_PER_STREAM(cuLaunchKernelEx, ptsz,
                       (const CUlaunchConfig *config, CUfunction function, void **arguments, void **extra),
                       launch_configured(config, default_stream, function, arguments, extra))
