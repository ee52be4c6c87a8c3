/* cuMemcpyBatchAsync: many copies in one call. CUDA does not order them among each other; here they run one after
 * the other. */
#include "stream_copy.h"

using namespace vgpu;

namespace
{

/* The attributes of the copy at `place`: the last entry that starts there or before. */
const CUmemcpyAttributes *attributes_of(std::size_t place, const CUmemcpyAttributes *attributes,
                                        const std::size_t *first_copies, std::size_t count)
{
    const CUmemcpyAttributes *found = nullptr;
    for (std::size_t index = 0; index < count && first_copies[index] <= place; ++index)
        found = &attributes[index];
    return found;
}

CUresult copy_one(Stream &stream, CUdeviceptr destination, CUdeviceptr source, std::size_t bytes,
                  CUmemcpySrcAccessOrder order)
{
    CopySide to = host_side(reinterpret_cast<const void *>(destination));
    CopySide from = host_side(reinterpret_cast<const void *>(source));
    CopyShape row = {bytes, 1, 1};
    bool up = to.range.kind == MemoryKind::device && from.range.kind != MemoryKind::device;
    /* A source that must be read before the call returns goes through staging buffers. */
    if (order != CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL || !up || stream.capture)
        return copy(stream, to, from, row, false);
    CUresult valid = check_copy(to, from, row);
    if (valid == CUDA_SUCCESS)
        upload_staged(stream, to, from, row);
    return valid != CUDA_SUCCESS ? valid : stream.context->error.load();
}

CUresult copy_batch(CUstream handle, DefaultStream default_stream, const CUdeviceptr *destinations,
                    const CUdeviceptr *sources, const std::size_t *sizes, std::size_t count,
                    const CUmemcpyAttributes *attributes, const std::size_t *first_copies, std::size_t attribute_count,
                    std::size_t *failed)
{
    Stream *stream;
    CUresult result = enter(handle, default_stream, stream, Capturing::allowed);
    if (result != CUDA_SUCCESS)
        return result;
    if (failed)
        *failed = SIZE_MAX;
    if (!destinations || !sources || !sizes || count == 0 || !attributes || !first_copies || attribute_count == 0 ||
        attribute_count > count || first_copies[0] != 0 || stream == &stream->context->legacy)
        return CUDA_ERROR_INVALID_VALUE;
    for (std::size_t place = 0; place < count; ++place) {
        const CUmemcpyAttributes *attribute = attributes_of(place, attributes, first_copies, attribute_count);
        result = copy_one(*stream, destinations[place], sources[place], sizes[place], attribute->srcAccessOrder);
        if (result != CUDA_SUCCESS) {
            if (failed)
                *failed = place;
            return result;
        }
    }
    return CUDA_SUCCESS;
}

} // namespace

DRIVER_CALL_PER_STREAM(cuMemcpyBatchAsync, ptsz,
                       (CUdeviceptr * destinations, CUdeviceptr *sources, size_t *sizes, size_t count,
                        CUmemcpyAttributes *attributes, size_t *first_copies, size_t attribute_count, size_t *failed,
                        CUstream stream),
                       copy_batch(stream, default_stream, destinations, sources, sizes, count, attributes, first_copies,
                                  attribute_count, failed))
DRIVER_CALL_PER_STREAM(cuMemcpyBatchAsync_v2, ptsz,
                       (CUdeviceptr * destinations, CUdeviceptr *sources, size_t *sizes, size_t count,
                        CUmemcpyAttributes *attributes, size_t *first_copies, size_t attribute_count, CUstream stream),
                       copy_batch(stream, default_stream, destinations, sources, sizes, count, attributes, first_copies,
                                  attribute_count, nullptr))
