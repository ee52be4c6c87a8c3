/* Copies between any two kinds of memory, with the waits that CUDA documents for each.
 *
 * The rules are those of "API synchronization behavior" in the CUDA Driver API; README.md has the table.
 */
#pragma once

#include "contexts/context.h"
#include "memory.h"

namespace vgpu
{

/* A box of bytes: rows of `width` bytes, `height` of them in a slice, `depth` slices. */
struct CopyShape {
    std::size_t width = 0;
    std::size_t height = 1;
    std::size_t depth = 1;
};

std::size_t bytes_of(const CopyShape &shape);

/* One side of a copy: the address of its first byte, and the distances in bytes between rows and between slices. */
struct CopySide {
    GpuRange range;
    std::size_t row_pitch = 0;
    std::size_t slice_pitch = 0;
};

/* CUDA_ERROR_INVALID_VALUE if the box exceeds an allocation, or its rows overlap. */
CUresult check_copy(const CopySide &destination, const CopySide &source, const CopyShape &shape);

/* The copy as one piece of GPU work, which can access pageable memory too, as the copies of graphs do. */
OperationReference copy_operation(Context *context, const CopySide &destination, const CopySide &source,
                                  const CopyShape &shape);

/* Both sides and the shape of a described box. */
CUresult describe(const CUDA_MEMCPY3D &box, CopySide &destination, CopySide &source, CopyShape &shape);

/* Copies the bytes to staging buffers before it returns, wherever they are on the host. */
void upload_staged(Stream &stream, const CopySide &destination, const CopySide &source, const CopyShape &shape);

/* Whether the call returns with the bytes on the host. */
bool is_read_back(const CopySide &destination, const CopySide &source, bool synchronous);

/* Enqueues a copy that check_copy accepts, and waits as its kinds of memory and `synchronous` demand. */
void enqueue_copy(Stream &stream, const CopySide &destination, const CopySide &source, const CopyShape &shape,
                  bool synchronous);

/* The side that a device pointer names. CUDA_ERROR_INVALID_VALUE if the driver does not know the address. */
CUresult device_side(CUdeviceptr address, CopySide &side);

/* The side that a host pointer names. */
CopySide host_side(const void *pointer);

/* Enqueues a device-to-host copy into `destination`, which GPU threads can always write. */
OperationReference fetch(Stream &stream, const GpuRange &source, char *destination, std::size_t bytes);

} // namespace vgpu
