/* cuOccupancy…: how many blocks of a kernel can run at the same time. Clusters always have one block. */
#include <algorithm>

#include "contexts/context.h"
#include "foundation/configuration.h"
#include "foundation/device_limits.h"
#include "module.h"

using namespace vgpu;

namespace
{

constexpr int warp = 32;

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

/* Finds the block size, up to `limit` threads (0: any), that lets the most threads of the kernel run at once. Of
 * equal sizes it takes the largest. The grid size is the number of blocks that fills the device. */
CUresult potential_block_size(int *grid_size, int *block_size, CUfunction function, CUoccupancyB2DSize shared_of,
                              std::size_t dynamic_shared, int limit)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!grid_size || !block_size || limit < 0)
        return CUDA_ERROR_INVALID_VALUE;
    const Kernel *kernel = find_kernel(function);
    if (!kernel)
        return CUDA_ERROR_INVALID_HANDLE;
    const ptx::KernelProperties properties = properties_of(*kernel);
    const int largest = static_cast<int>(properties.maximum_threads);
    int most = 0;
    for (int size = limit == 0 ? largest : std::min(limit, largest); size > 0; size = (size - 1) / warp * warp) {
        const std::size_t dynamic = shared_of ? shared_of(size) : dynamic_shared;
        const int blocks = resident_blocks(size, properties.shared_size + dynamic);
        if (blocks * size <= most)
            continue;
        most = blocks * size;
        *block_size = size;
        *grid_size = blocks * static_cast<int>(configuration().multiprocessors);
    }
    return most > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* How much dynamic shared memory each block may use so that `blocks` of them still run at once; 0 if they do not fit
 * anyway. */
std::size_t available_shared(const Kernel &kernel, int blocks, int block_size)
{
    const ptx::KernelProperties properties = properties_of(kernel);
    const bool fits =
        block_size <= static_cast<int>(properties.maximum_threads) && blocks <= resident_blocks(block_size, 0);
    const bool asks = kernel.attributes.count(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) != 0;
    const std::size_t most = std::min(shared_memory_per_multiprocessor / blocks - reserved_shared_memory,
                                      asks ? shared_memory_per_block : shared_memory_unasked);
    return fits && most > properties.shared_size ? most - properties.shared_size : 0;
}

/* The number of blocks in a cluster that the launch asks for; 0 if it asks for none. */
unsigned cluster_size(const CUlaunchConfig &config)
{
    for (unsigned index = 0; index < config.numAttrs; ++index)
        if (config.attrs[index].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
            const auto &size = config.attrs[index].value.clusterDim;
            return size.x * size.y * size.z;
        }
    return 0;
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
DRIVER_CALL(cuOccupancyMaxPotentialBlockSize)(int *grid_size, int *block_size, CUfunction function,
                                              CUoccupancyB2DSize shared_of, size_t dynamic_shared, int limit)
{
    return potential_block_size(grid_size, block_size, function, shared_of, dynamic_shared, limit);
}
DRIVER_CALL(cuOccupancyMaxPotentialBlockSizeWithFlags)(int *grid_size, int *block_size, CUfunction function,
                                                       CUoccupancyB2DSize shared_of, size_t dynamic_shared, int limit,
                                                       unsigned int)
{
    return potential_block_size(grid_size, block_size, function, shared_of, dynamic_shared, limit);
}
DRIVER_CALL(cuOccupancyAvailableDynamicSMemPerBlock)(size_t *bytes, CUfunction function, int blocks, int block_size)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!bytes || blocks <= 0 || block_size <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    const Kernel *kernel = find_kernel(function);
    if (!kernel)
        return CUDA_ERROR_INVALID_HANDLE;
    *bytes = available_shared(*kernel, blocks, block_size);
    return CUDA_SUCCESS;
}
DRIVER_CALL(cuOccupancyMaxPotentialClusterSize)(int *size, CUfunction function, const CUlaunchConfig *config)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!size || !config)
        return CUDA_ERROR_INVALID_VALUE;
    *size = 1;
    return find_kernel(function) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
DRIVER_CALL(cuOccupancyMaxActiveClusters)(int *clusters, CUfunction function, const CUlaunchConfig *config)
{
    const unsigned size = config ? cluster_size(*config) : 0;
    if (!clusters || size == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (size > 1)
        return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    const unsigned threads = config->blockDimX * config->blockDimY * config->blockDimZ;
    const CUresult result = active_blocks(clusters, function, static_cast<int>(threads), config->sharedMemBytes);
    if (result == CUDA_SUCCESS)
        *clusters *= configuration().multiprocessors;
    return result;
}
