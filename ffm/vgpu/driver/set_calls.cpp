/* cuMemset and its relatives. */
#include <cstring>

#include "configuration.h"
#include "context.h"
#include "memory.h"
#include "wait.h"

using namespace vgpu;

namespace
{

template <typename Value> void fill_row(char *row, Value value, std::size_t width)
{
    for (std::size_t index = 0; index < width; ++index)
        std::memcpy(row + index * sizeof value, &value, sizeof value);
}

/* Rows of `width` values, `pitch` bytes apart. The program's own pages are filled through a row's copy. */
template <typename Value>
bool fill(const GpuRange &range, std::size_t pitch, Value value, std::size_t width, std::size_t height)
{
    if (range.gpu_view) {
        for (std::size_t row = 0; row < height; ++row)
            fill_row(range.gpu_view + row * pitch, value, width);
        return true;
    }
    std::vector<char> bytes(width * sizeof value);
    fill_row(bytes.data(), value, width);
    GpuRange source;
    source.gpu_view = bytes.data();
    for (std::size_t row = 0; row < height; ++row) {
        if (!transfer(range, row * pitch, source, 0, bytes.size()))
            return false;
    }
    return true;
}

/* A set on device memory does not wait; one on managed or page-locked memory does, unless it is an `…Async`.
 */
template <typename Value>
CUresult set(CUstream handle, DefaultStream default_stream, CUdeviceptr address, std::size_t pitch, Value value,
             std::size_t width, std::size_t height, bool synchronous)
{
    Stream *stream;
    CUresult result = enter(handle, default_stream, stream);
    if (result != CUDA_SUCCESS || width == 0 || height == 0)
        return result;
    GpuRange range = gpu_range(address);
    if (height == 1)
        pitch = width * sizeof value;
    if (range.kind == MemoryKind::pageable || pitch < width * sizeof value || address % sizeof value != 0 ||
        (height - 1) * pitch + width * sizeof value > range.size)
        return CUDA_ERROR_INVALID_VALUE;
    CallCost cost(microseconds(configuration().call_set));
    auto operation = std::make_shared<Operation>();
    operation->engine = Engine::compute;
    operation->occupancy = 0.1;
    operation->duration = microseconds(configuration().copy_latency) +
                          transfer_time(static_cast<double>(width * height * sizeof value), configuration().set);
    operation->work = [context = stream->context, range, pitch, value, width, height] {
        if (!fill(range, pitch, value, width, height))
            context->error = CUDA_ERROR_ILLEGAL_ADDRESS;
    };
    submit(*stream, operation);
    if (synchronous && range.kind != MemoryKind::device)
        wait_for_gpu({operation});
    return stream->context->error;
}

} // namespace

#define SET_CALLS(bits, Value)                                                                                         \
    DRIVER_CALL_PER_STREAM(cuMemsetD##bits##_v2, ptds, (CUdeviceptr address, Value value, size_t count),               \
                           set<Value>(nullptr, default_stream, address, 0, value, count, 1, true))                     \
    DRIVER_CALL_PER_STREAM(cuMemsetD##bits##Async, ptsz,                                                               \
                           (CUdeviceptr address, Value value, size_t count, CUstream stream),                          \
                           set<Value>(stream, default_stream, address, 0, value, count, 1, false))                     \
    DRIVER_CALL_PER_STREAM(cuMemsetD2D##bits##_v2, ptds,                                                               \
                           (CUdeviceptr address, size_t pitch, Value value, size_t width, size_t height),              \
                           set<Value>(nullptr, default_stream, address, pitch, value, width, height, true))            \
    DRIVER_CALL_PER_STREAM(                                                                                            \
        cuMemsetD2D##bits##Async, ptsz,                                                                                \
        (CUdeviceptr address, size_t pitch, Value value, size_t width, size_t height, CUstream stream),                \
        set<Value>(stream, default_stream, address, pitch, value, width, height, false))

SET_CALLS(8, unsigned char)
SET_CALLS(16, unsigned short)
SET_CALLS(32, unsigned int)
