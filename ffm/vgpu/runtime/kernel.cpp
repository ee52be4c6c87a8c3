/* Kernel launches, and questions about kernels. */
#include <cstring>
#include <vector>

#include "registry.h"

using namespace cudart;

namespace
{

cudaError_t launch_kernel(const DriverTable &driver, CUkernel kernel, dim3 grid, dim3 block, void **arguments,
                          std::size_t shared_bytes, cudaStream_t stream)
{
    CUresult result =
        driver.cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), grid.x, grid.y, grid.z, block.x, block.y, block.z,
                              static_cast<unsigned>(shared_bytes), stream_of(stream), arguments, nullptr);
    return result == CUDA_ERROR_INVALID_VALUE ? cudaErrorInvalidConfiguration : from(result);
}

cudaError_t launch(const DriverTable &driver, const void *function, dim3 grid, dim3 block, void **arguments,
                   std::size_t shared_bytes, cudaStream_t stream)
{
    cudaError_t error = ready();
    CUkernel kernel = nullptr;
    if (error == cudaSuccess)
        error = find_kernel(function, kernel);
    return error != cudaSuccess ? error : launch_kernel(driver, kernel, grid, block, arguments, shared_bytes, stream);
}

/* `kernel` is null if __cudaGetKernel found none. It has then reported the error. */
cudaError_t launch_stub(const DriverTable &driver, cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments,
                        std::size_t shared_bytes, cudaStream_t stream)
{
    cudaError_t error = kernel ? ready() : cudaErrorInvalidDeviceFunction;
    return error != cudaSuccess ? error
                                : launch_kernel(driver, reinterpret_cast<CUkernel>(kernel), grid, block, arguments,
                                                shared_bytes, stream);
}

/* Attributes have the same numbers and layout in the runtime and in the driver (driver_types.h, cuda.h). */
cudaError_t launch_configured(const DriverTable &driver, const cudaLaunchConfig_t *config, const void *function,
                              void **arguments)
{
    static_assert(sizeof(cudaLaunchAttribute) == sizeof(CUlaunchAttribute));
    cudaError_t error = config ? ready() : cudaErrorInvalidValue;
    CUkernel kernel = nullptr;
    if (error == cudaSuccess)
        error = find_kernel(function, kernel);
    if (error != cudaSuccess)
        return error;
    std::vector<CUlaunchAttribute> attributes(config->numAttrs);
    if (config->numAttrs > 0)
        std::memcpy(attributes.data(), config->attrs, attributes.size() * sizeof(CUlaunchAttribute));
    CUlaunchConfig given = {};
    given.gridDimX = config->gridDim.x;
    given.gridDimY = config->gridDim.y;
    given.gridDimZ = config->gridDim.z;
    given.blockDimX = config->blockDim.x;
    given.blockDimY = config->blockDim.y;
    given.blockDimZ = config->blockDim.z;
    given.sharedMemBytes = static_cast<unsigned>(config->dynamicSmemBytes);
    given.hStream = stream_of(config->stream);
    given.attrs = attributes.data();
    given.numAttrs = config->numAttrs;
    CUresult result = driver.cuLaunchKernelEx(&given, reinterpret_cast<CUfunction>(kernel), arguments, nullptr);
    return result == CUDA_ERROR_INVALID_VALUE ? cudaErrorInvalidConfiguration : from(result);
}

cudaError_t launch_cooperatively(const DriverTable &driver, const void *function, dim3 grid, dim3 block,
                                 void **arguments, std::size_t shared_bytes, cudaStream_t stream)
{
    cudaLaunchAttribute cooperative = {};
    cooperative.id = cudaLaunchAttributeCooperative;
    cooperative.val.cooperative = 1;
    const cudaLaunchConfig_t config = {grid, block, shared_bytes, stream, &cooperative, 1};
    return launch_configured(driver, &config, function, arguments);
}

/* The values between <<< and >>>, kept from their evaluation until the kernel's stub takes them. */
struct CallConfiguration {
    dim3 grid, block;
    std::size_t shared_bytes;
    CUstream_st *stream;
};

std::vector<CallConfiguration> &call_configurations()
{
    thread_local std::vector<CallConfiguration> pushed;
    return pushed;
}

int attribute(CUfunction function, CUfunction_attribute which)
{
    int value = 0;
    legacy_driver().cuFuncGetAttribute(&value, which, function);
    return value;
}

} // namespace

RUNTIME_CALL_PER_STREAM(cudaLaunchKernel, ptsz,
                        (const void *function, dim3 grid, dim3 block, void **arguments, size_t shared_bytes,
                         cudaStream_t stream),
                        launch(driver, function, grid, block, arguments, shared_bytes, stream))

RUNTIME_CALL_PER_STREAM(cudaLaunchKernelExC, ptsz,
                        (const cudaLaunchConfig_t *config, const void *function, void **arguments),
                        launch_configured(driver, config, function, arguments))

RUNTIME_CALL_PER_STREAM(cudaLaunchCooperativeKernel, ptsz,
                        (const void *function, dim3 grid, dim3 block, void **arguments, size_t shared_bytes,
                         cudaStream_t stream),
                        launch_cooperatively(driver, function, grid, block, arguments, shared_bytes, stream))

/* Called by the stubs that nvcc generates for kernels (crt/device_functions.h, crt/host_runtime.h). */
extern "C" __attribute__((visibility("default"))) unsigned
__cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared_bytes, CUstream_st *stream)
{
    call_configurations().push_back({grid, block, shared_bytes, stream});
    return 0;
}
RUNTIME_CALL __cudaPopCallConfiguration(dim3 *grid, dim3 *block, std::size_t *shared_bytes, void *stream)
{
    if (call_configurations().empty())
        return finish(cudaErrorMissingConfiguration);
    const CallConfiguration &pushed = call_configurations().back();
    *grid = pushed.grid;
    *block = pushed.block;
    *shared_bytes = pushed.shared_bytes;
    *static_cast<CUstream_st **>(stream) = pushed.stream;
    call_configurations().pop_back();
    return cudaSuccess;
}
RUNTIME_CALL __cudaGetKernel(cudaKernel_t *kernel, const void *host_function)
{
    *kernel = nullptr;
    cudaError_t error = ready();
    return finish(error != cudaSuccess ? error : find_kernel(host_function, *reinterpret_cast<CUkernel *>(kernel)));
}
RUNTIME_CALL_PER_STREAM(__cudaLaunchKernel, ptsz,
                        (cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, std::size_t shared_bytes,
                         cudaStream_t stream),
                        launch_stub(driver, kernel, grid, block, arguments, shared_bytes, stream))

RUNTIME_CALL cudaFuncGetAttributes(cudaFuncAttributes *result, const void *host_function)
{
    cudaError_t error = ready();
    CUkernel kernel = nullptr;
    CUfunction function = nullptr;
    if (error == cudaSuccess)
        error = result ? find_kernel(host_function, kernel) : cudaErrorInvalidValue;
    if (error == cudaSuccess)
        error = from(legacy_driver().cuKernelGetFunction(&function, kernel));
    if (error != cudaSuccess)
        return finish(error);
    std::memset(result, 0, sizeof *result);
    result->maxThreadsPerBlock = attribute(function, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    result->numRegs = attribute(function, CU_FUNC_ATTRIBUTE_NUM_REGS);
    result->ptxVersion = attribute(function, CU_FUNC_ATTRIBUTE_PTX_VERSION);
    result->binaryVersion = attribute(function, CU_FUNC_ATTRIBUTE_BINARY_VERSION);
    result->maxDynamicSharedSizeBytes = attribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
    return cudaSuccess;
}

RUNTIME_CALL cudaFuncSetAttribute(const void *host_function, cudaFuncAttribute which, int value)
{
    cudaError_t error = ready();
    CUkernel kernel = nullptr;
    if (error == cudaSuccess)
        error = find_kernel(host_function, kernel);
    if (error == cudaSuccess)
        error = from(legacy_driver().cuFuncSetAttribute(reinterpret_cast<CUfunction>(kernel),
                                                        static_cast<CUfunction_attribute>(which), value));
    return finish(error);
}

RUNTIME_CALL cudaFuncSetCacheConfig(const void *host_function, cudaFuncCache config)
{
    cudaError_t error = ready();
    CUkernel kernel = nullptr;
    if (error == cudaSuccess)
        error = find_kernel(host_function, kernel);
    if (error == cudaSuccess)
        error = from(legacy_driver().cuFuncSetCacheConfig(reinterpret_cast<CUfunction>(kernel),
                                                          static_cast<CUfunc_cache>(config)));
    return finish(error);
}

RUNTIME_CALL cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *host_function,
                                                                    int block_size, size_t shared_bytes,
                                                                    unsigned int flags)
{
    cudaError_t error = ready();
    CUkernel kernel = nullptr;
    if (error == cudaSuccess)
        error = find_kernel(host_function, kernel);
    if (error == cudaSuccess)
        error = from(legacy_driver().cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
            blocks, reinterpret_cast<CUfunction>(kernel), block_size, shared_bytes, flags));
    return finish(error);
}

RUNTIME_CALL cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *host_function, int block_size,
                                                           size_t shared_bytes)
{
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, host_function, block_size, shared_bytes, 0);
}
