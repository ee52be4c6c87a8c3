/* The driver's private table, which `cuGetExportTable` returns to libraries of the same vendor.
 *
 * NVIDIA's libraries use such tables too: their calls wait for the GPU without going through any public function.
 */
#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda.h>

namespace vgpu
{

/* The table's key. */
constexpr CUuuid private_table_id = {
    {0x76, 0x67, 0x70, 0x75, 0x2d, 0x70, 0x72, 0x69, 0x76, 0x61, 0x74, 0x65, 0x2d, 0x74, 0x31, 0x00}};

/* Every call uses the calling thread's current context. */
struct PrivateTable {
    std::size_t size; /* of this structure: a newer driver may append fields */

    /* Copies `bytes` bytes to the host after the stream's work, and waits until they are there. */
    CUresult (*fetch)(void *destination, CUdeviceptr source, std::size_t bytes, CUstream stream);

    /* Launches a kernel; does not wait. */
    CUresult (*launch)(CUkernel kernel, const std::uint32_t grid[3], const std::uint32_t block[3], CUstream stream,
                       void **arguments);

    /* Reports whether the stream has work left; does not wait. */
    CUresult (*is_idle)(CUstream stream, int *idle);
};

} // namespace vgpu
