/* cuOccupancy…: how many blocks of a kernel run at a time. Here only the number of threads limits them. */
#include <algorithm>

#include "contexts/context.h"
#include "foundation/device_limits.h"
#include "module.h"

using namespace vgpu;

namespace
{

CUresult active_blocks(int *blocks, const void *function, int block_size)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!blocks || block_size <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (!find_kernel(function))
        return CUDA_ERROR_INVALID_HANDLE;
    *blocks = block_size > threads_per_block
                  ? 0
                  : std::min(blocks_per_multiprocessor, threads_per_multiprocessor / block_size);
    return CUDA_SUCCESS;
}

} // namespace

DRIVER_CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor)(int *blocks, CUfunction function, int block_size, size_t)
{
    return active_blocks(blocks, function, block_size);
}
DRIVER_CALL(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)(int *blocks, CUfunction function, int block_size,
                                                                  size_t, unsigned int)
{
    return active_blocks(blocks, function, block_size);
}
