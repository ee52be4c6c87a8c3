/* Registering images and kernels, and launching them. */
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <pthread.h>
#include <string>

#include "../include/kernel_image.h"
#include "runtime_api.h"

using namespace cudart;

namespace
{

/* An image that a program or a library handed over when it started; loaded when a kernel of it is first used.
 */
struct Image {
    void *data;
    CUlibrary library;
};

struct RegisteredKernel {
    Image *image;
    std::string name;
    CUkernel kernel;
};

/* Guards all below. Never destroyed: images are given back while the program's destructors run. */
std::mutex &registry_mutex()
{
    static std::mutex *instance = [] {
        auto *created = new std::mutex;
        /* Another thread may hold it while the process forks; the child's destructors take it at exit. */
        pthread_atfork(nullptr, nullptr, [] { new (&registry_mutex()) std::mutex; });
        return created;
    }();
    return *instance;
}

std::map<const void *, RegisteredKernel> &kernels()
{
    static auto *instance = new std::map<const void *, RegisteredKernel>;
    return *instance;
}

cudaError_t find_kernel(const void *host_function, CUkernel &kernel)
{
    std::lock_guard<std::mutex> lock(registry_mutex());
    auto found = kernels().find(host_function);
    if (found == kernels().end())
        return cudaErrorInvalidDeviceFunction;
    RegisteredKernel &registered = found->second;
    const DriverTable &driver = legacy_driver();
    if (!registered.image->library) {
        CUresult result = driver.cuLibraryLoadData(&registered.image->library, registered.image->data, nullptr, nullptr,
                                                   0, nullptr, nullptr, 0);
        if (result != CUDA_SUCCESS)
            return from(result);
    }
    if (!registered.kernel) {
        CUresult result =
            driver.cuLibraryGetKernel(&registered.kernel, registered.image->library, registered.name.c_str());
        if (result != CUDA_SUCCESS)
            return result == CUDA_ERROR_NOT_FOUND ? cudaErrorInvalidDeviceFunction : from(result);
    }
    kernel = registered.kernel;
    return cudaSuccess;
}

cudaError_t launch(const DriverTable &driver, const void *function, dim3 grid, dim3 block, void **arguments,
                   std::size_t shared_bytes, cudaStream_t stream)
{
    cudaError_t error = ready();
    CUkernel kernel = nullptr;
    if (error == cudaSuccess)
        error = find_kernel(function, kernel);
    if (error != cudaSuccess)
        return error;
    CUresult result =
        driver.cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), grid.x, grid.y, grid.z, block.x, block.y, block.z,
                              static_cast<unsigned>(shared_bytes), stream_of(stream), arguments, nullptr);
    return result == CUDA_ERROR_INVALID_VALUE ? cudaErrorInvalidConfiguration : from(result);
}

int attribute(CUfunction function, CUfunction_attribute which)
{
    int value = 0;
    legacy_driver().cuFuncGetAttribute(&value, which, function);
    return value;
}

} // namespace

extern "C" {

__attribute__((visibility("default"))) void **__cudaRegisterFatBinary(void *data)
{
    return reinterpret_cast<void **>(new Image{data, nullptr});
}

__attribute__((visibility("default"))) void __cudaRegisterFatBinaryEnd(void **) {}

__attribute__((visibility("default"))) void __cudaRegisterFunction(void **handle, const char *host_function, char *,
                                                                   const char *device_name, int, uint3 *, uint3 *,
                                                                   dim3 *, dim3 *, int *)
{
    std::lock_guard<std::mutex> lock(registry_mutex());
    kernels()[host_function] = {reinterpret_cast<Image *>(handle), device_name, nullptr};
}

/* The code of the kernels goes away after this, so no kernel may be running. */
__attribute__((visibility("default"))) void __cudaUnregisterFatBinary(void **handle)
{
    std::lock_guard<std::mutex> lock(registry_mutex());
    Image *image = reinterpret_cast<Image *>(handle);
    for (auto kernel = kernels().begin(); kernel != kernels().end();)
        kernel = kernel->second.image == image ? kernels().erase(kernel) : std::next(kernel);
    if (image->library)
        legacy_driver().cuLibraryUnload(image->library);
    delete image;
}

} // extern "C"

RUNTIME_CALL_PER_STREAM(cudaLaunchKernel, ptsz,
                        (const void *function, dim3 grid, dim3 block, void **arguments, size_t shared_bytes,
                         cudaStream_t stream),
                        launch(driver, function, grid, block, arguments, shared_bytes, stream))

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
