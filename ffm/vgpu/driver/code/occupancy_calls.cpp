/* cuOccupancy…: how many blocks of a kernel run at a time. */
#include "contexts/context.h"
#include "foundation/device_limits.h"
#include "module.h"

using namespace vgpu;

namespace
{

CUresult active_blocks(int *blocks, const void *function, int block_size, std::size_t dynamic_shared)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!blocks || block_size <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    const Kernel *kernel = find_kernel(function);
    if (!kernel)
        return CUDA_ERROR_INVALID_HANDLE;
    const ptx::KernelProperties properties = properties_of(*kernel);
    *blocks = block_size > static_cast<int>(properties.maximum_threads)
                  ? 0
                  : resident_blocks(block_size, properties.shared_size + dynamic_shared);
    return CUDA_SUCCESS;
}

} // namespace

DRIVER_CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor)(int *blocks, CUfunction function, int block_size,
                                                         size_t dynamic_shared)
{
    return active_blocks(blocks, function, block_size, dynamic_shared);
}
DRIVER_CALL(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)(int *blocks, CUfunction function, int block_size,
                                                                  size_t dynamic_shared, unsigned int)
{
    return active_blocks(blocks, function, block_size, dynamic_shared);
}
