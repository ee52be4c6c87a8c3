/* cuMemset and its relatives. */
#include <cstring>

#include "contexts/wait.h"
#include "foundation/configuration.h"
#include "graphs/graph.h"
#include "set.h"

using namespace vgpu;

namespace
{

template <typename Value> void fill_row(char *row, Value value, std::size_t width)
{
    for (std::size_t index = 0; index < width; ++index)
        std::memcpy(row + index * sizeof value, &value, sizeof value);
}

/* Fills rows of `width` values that are `pitch` bytes apart. Memory without a GPU view gets a copy of one filled
 * row. */
template <typename Value> bool fill(const GpuRange &range, const CUDA_MEMSET_NODE_PARAMS &set)
{
    Value value = static_cast<Value>(set.value);
    bool owned = range.kind == MemoryKind::device && DeviceMemory::owns(range.device, range.program_address);
    if (value == 0 && set.height == 1 && owned) {
        DeviceMemory::clear(range.device, range.gpu_view, set.width * sizeof value);
        return true;
    }
    if (range.gpu_view) {
        for (std::size_t row = 0; row < set.height; ++row)
            fill_row(range.gpu_view + row * set.pitch, value, set.width);
        return true;
    }
    std::vector<char> bytes(set.width * sizeof value);
    fill_row(bytes.data(), value, set.width);
    GpuRange source;
    source.gpu_view = bytes.data();
    for (std::size_t row = 0; row < set.height; ++row) {
        if (!transfer(range, row * set.pitch, source, 0, bytes.size()))
            return false;
    }
    return true;
}

bool fill_by_element(const GpuRange &range, const CUDA_MEMSET_NODE_PARAMS &set)
{
    if (set.elementSize == 1)
        return fill<unsigned char>(range, set);
    return set.elementSize == 2 ? fill<unsigned short>(range, set) : fill<unsigned int>(range, set);
}

/* Setting device memory does not wait. Setting managed or pinned memory does, except in an `…Async` call. */
CUresult set(CUstream handle, DefaultStream default_stream, CUDA_MEMSET_NODE_PARAMS set, bool synchronous)
{
    Stream *stream;
    CUresult result = enter(handle, default_stream, stream, Capturing::allowed);
    if (result != CUDA_SUCCESS || set.width == 0 || set.height == 0)
        return result;
    result = check_set(set);
    if (result != CUDA_SUCCESS)
        return result;
    CallCost cost(microseconds(configuration().call_set));
    if (stream->capture)
        return synchronous ? refuse_capture(*stream) : capture(*stream, SetNode{set});
    OperationReference operation = set_operation(stream->context, set);
    submit(*stream, operation);
    if (synchronous && gpu_range(set.dst).kind != MemoryKind::device) {
        CallCost::spend();
        wait_for_gpu({operation});
    }
    return stream->context->error;
}

} // namespace

CUresult vgpu::check_set(CUDA_MEMSET_NODE_PARAMS &set)
{
    GpuRange range = gpu_range(set.dst);
    if (set.elementSize != 1 && set.elementSize != 2 && set.elementSize != 4)
        return CUDA_ERROR_INVALID_VALUE;
    std::size_t row = set.width * set.elementSize;
    if (set.height == 1)
        set.pitch = row;
    bool known = range.kind != MemoryKind::pageable && set.pitch >= row && set.dst % set.elementSize == 0;
    return known && row > 0 && (set.height - 1) * set.pitch + row <= range.size ? CUDA_SUCCESS
                                                                                : CUDA_ERROR_INVALID_VALUE;
}

OperationReference vgpu::set_operation(Context *context, const CUDA_MEMSET_NODE_PARAMS &set)
{
    auto operation = std::make_shared<Operation>();
    operation->engine = Engine::compute;
    operation->occupancy = operation->least_room = 0.1;
    operation->duration =
        microseconds(configuration().copy_latency) +
        transfer_time(static_cast<double>(set.width * set.height * set.elementSize), configuration().set);
    operation->moves_bytes = set.width * set.height * set.elementSize < worth_estimating;
    operation->work = [context, range = gpu_range(set.dst), set] {
        const std::size_t size = (set.height - 1) * set.pitch + set.width * set.elementSize;
        if (!still_allocated(range, size) || !fill_by_element(range, set))
            context->error = CUDA_ERROR_ILLEGAL_ADDRESS;
    };
    return operation;
}

#define SET_CALLS(bits, Value)                                                                                         \
    DRIVER_CALL_PER_STREAM(cuMemsetD##bits##_v2, ptds, (CUdeviceptr address, Value value, size_t count),               \
                           set(nullptr, default_stream, {address, 0, value, sizeof value, count, 1}, true))            \
    DRIVER_CALL_PER_STREAM(cuMemsetD##bits##Async, ptsz,                                                               \
                           (CUdeviceptr address, Value value, size_t count, CUstream stream),                          \
                           set(stream, default_stream, {address, 0, value, sizeof value, count, 1}, false))            \
    DRIVER_CALL_PER_STREAM(cuMemsetD2D##bits##_v2, ptds,                                                               \
                           (CUdeviceptr address, size_t pitch, Value value, size_t width, size_t height),              \
                           set(nullptr, default_stream, {address, pitch, value, sizeof value, width, height}, true))   \
    DRIVER_CALL_PER_STREAM(                                                                                            \
        cuMemsetD2D##bits##Async, ptsz,                                                                                \
        (CUdeviceptr address, size_t pitch, Value value, size_t width, size_t height, CUstream stream),                \
        set(stream, default_stream, {address, pitch, value, sizeof value, width, height}, false))

SET_CALLS(8, unsigned char)
SET_CALLS(16, unsigned short)
SET_CALLS(32, unsigned int)

/* The first forms, whose prototypes have addresses of 32 bits. Programs that look them up by name, such as hashcat,
 * pass whole ones. */
#define FIRST_SET_CALL(bits, Value)                                                                                    \
    extern "C" __attribute__((visibility("hidden"))) CUresult implementation_cuMemsetD##bits(                          \
        CUdeviceptr address, Value value, size_t count)                                                                \
    {                                                                                                                  \
        return implementation_cuMemsetD##bits##_v2(address, value, count);                                             \
    }

FIRST_SET_CALL(8, unsigned char)
FIRST_SET_CALL(16, unsigned short)
FIRST_SET_CALL(32, unsigned int)
