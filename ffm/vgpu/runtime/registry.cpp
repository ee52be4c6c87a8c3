/* Registering images, kernels and variables: what nvcc's constructors call. */
#include "registry.h"

#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>
#include <pthread.h>
#include <string>

#include "../include/kernel_image.h"

using namespace cudart;

namespace
{

/* An image that a program or a library registered at its start; loaded when one of its kernels is first used. */
struct Image {
    void *data;
    CUlibrary library;
};

struct RegisteredKernel {
    Image *image;
    std::string name;
    CUkernel kernel;
};

struct RegisteredVariable {
    Image *image;
    std::string name;
};

/* Guards everything below. Never destroyed: images are unregistered while the program's destructors run. */
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

std::map<const void *, RegisteredVariable> &variables()
{
    static auto *instance = new std::map<const void *, RegisteredVariable>;
    return *instance;
}

/* The program's end has begun. NVIDIA's driver is shut down by then, so that its runtime unloads nothing and waits for
 * nothing (cudaErrorCudartUnloading in the CUDA Runtime API). */
std::atomic<bool> ending{false};

CUresult load(Image &image)
{
    static const int registered = std::atexit([] { ending = true; });
    static_cast<void>(registered);
    return image.library ? CUDA_SUCCESS
                         : legacy_driver().cuLibraryLoadData(&image.library, image.data, nullptr, nullptr, 0, nullptr,
                                                             nullptr, 0);
}

template <typename Registered> void forget(std::map<const void *, Registered> &all, const Image *image)
{
    for (auto one = all.begin(); one != all.end();)
        one = one->second.image == image ? all.erase(one) : std::next(one);
}

} // namespace

cudaError_t cudart::find_kernel(const void *host_function, CUkernel &kernel)
{
    std::lock_guard<std::mutex> lock(registry_mutex());
    auto found = kernels().find(host_function);
    if (found == kernels().end()) {
        CUfunction function;
        kernel = reinterpret_cast<CUkernel>(const_cast<void *>(host_function));
        bool known = legacy_driver().cuKernelGetFunction(&function, kernel) == CUDA_SUCCESS;
        return known ? cudaSuccess : cudaErrorInvalidDeviceFunction;
    }
    RegisteredKernel &registered = found->second;
    CUresult result = load(*registered.image);
    if (result == CUDA_SUCCESS && !registered.kernel)
        result =
            legacy_driver().cuLibraryGetKernel(&registered.kernel, registered.image->library, registered.name.c_str());
    kernel = registered.kernel;
    return result == CUDA_ERROR_NOT_FOUND ? cudaErrorInvalidDeviceFunction : from(result);
}

cudaError_t cudart::find_variable(const void *symbol, CUdeviceptr &address, std::size_t &size)
{
    std::lock_guard<std::mutex> lock(registry_mutex());
    auto found = variables().find(symbol);
    if (found == variables().end())
        return cudaErrorInvalidSymbol;
    CUresult result = load(*found->second.image);
    if (result == CUDA_SUCCESS)
        result = legacy_driver().cuLibraryGetGlobal(&address, &size, found->second.image->library,
                                                    found->second.name.c_str());
    return result == CUDA_ERROR_NOT_FOUND ? cudaErrorInvalidSymbol : from(result);
}

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

__attribute__((visibility("default"))) void __cudaRegisterVar(void **handle, char *host_variable, char *,
                                                              const char *device_name, int, std::size_t, int, int)
{
    std::lock_guard<std::mutex> lock(registry_mutex());
    variables()[host_variable] = {reinterpret_cast<Image *>(handle), device_name};
}

/* Loads the image at once; programs with managed variables call this at their start. */
__attribute__((visibility("default"))) char __cudaInitModule(void **handle)
{
    if (ready() != cudaSuccess)
        return 0;
    std::lock_guard<std::mutex> lock(registry_mutex());
    return load(*reinterpret_cast<Image *>(handle)) == CUDA_SUCCESS;
}

/* The code of the kernels goes away after this, so no kernel may be running, unless the program ends. */
__attribute__((visibility("default"))) void __cudaUnregisterFatBinary(void **handle)
{
    std::lock_guard<std::mutex> lock(registry_mutex());
    Image *image = reinterpret_cast<Image *>(handle);
    forget(kernels(), image);
    forget(variables(), image);
    if (image->library && !ending)
        legacy_driver().cuLibraryUnload(image->library);
    delete image;
}

} // extern "C"
