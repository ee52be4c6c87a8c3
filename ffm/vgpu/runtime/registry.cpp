/* Registering images, kernels and variables. The constructors that nvcc generates call these functions. */
#include "registry.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>
#include <pthread.h>
#include <string>
#include <vector>

#include "../include/kernel_image.h"

using namespace cudart;

namespace
{

/* An image that the program or a library registered when it was loaded. The image is loaded when one of its kernels
 * is first used. */
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

/* A `__managed__` variable. The program's own pointer points to it once its image is loaded. */
struct ManagedVariable {
    Image *image;
    std::string name;
    void **pointer;
};

/* Guards everything below. Never destroyed: images are unregistered while the program's destructors run. */
std::mutex &registry_mutex()
{
    static std::mutex *instance = [] {
        auto *created = new std::mutex;
        /* Another thread may hold the mutex during a fork, and the child's destructors need it at exit. */
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

std::vector<ManagedVariable> &managed_variables()
{
    static auto *instance = new std::vector<ManagedVariable>;
    return *instance;
}

/* Set when the program starts to exit. NVIDIA's driver is shut down by then, so its runtime neither unloads nor
 * waits (cudaErrorCudartUnloading in the CUDA Runtime API). */
std::atomic<bool> ending{false};

/* Points the program's pointers to the image's managed variables. The registry then also finds the variables by
 * their addresses. */
CUresult place_managed(Image &image)
{
    for (const ManagedVariable &variable : managed_variables()) {
        if (variable.image != &image)
            continue;
        CUdeviceptr address;
        std::size_t size;
        CUresult result = legacy_driver().cuLibraryGetManaged(&address, &size, image.library, variable.name.c_str());
        if (result != CUDA_SUCCESS)
            return result;
        *variable.pointer = reinterpret_cast<void *>(address);
        variables()[*variable.pointer] = {&image, variable.name};
    }
    return CUDA_SUCCESS;
}

CUresult load(Image &image)
{
    static const int registered = std::atexit([] { ending = true; });
    static_cast<void>(registered);
    if (image.library)
        return CUDA_SUCCESS;
    CUresult result =
        legacy_driver().cuLibraryLoadData(&image.library, image.data, nullptr, nullptr, 0, nullptr, nullptr, 0);
    return result == CUDA_SUCCESS ? place_managed(image) : result;
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

__attribute__((visibility("default"))) void __cudaRegisterManagedVar(void **handle, void **host_pointer, char *,
                                                                     const char *device_name, int, std::size_t, int,
                                                                     int)
{
    std::lock_guard<std::mutex> lock(registry_mutex());
    managed_variables().push_back({reinterpret_cast<Image *>(handle), device_name, host_pointer});
}

/* Loads the image at once. Programs with managed variables call this when they start. */
__attribute__((visibility("default"))) char __cudaInitModule(void **handle)
{
    if (ready() != cudaSuccess)
        return 0;
    std::lock_guard<std::mutex> lock(registry_mutex());
    return load(*reinterpret_cast<Image *>(handle)) == CUDA_SUCCESS;
}

/* Unloads the kernels' code, so no kernel may still be running. At the program's exit nothing is unloaded. */
__attribute__((visibility("default"))) void __cudaUnregisterFatBinary(void **handle)
{
    std::lock_guard<std::mutex> lock(registry_mutex());
    Image *image = reinterpret_cast<Image *>(handle);
    forget(kernels(), image);
    forget(variables(), image);
    auto &managed = managed_variables();
    managed.erase(std::remove_if(managed.begin(), managed.end(),
                                 [image](const ManagedVariable &one) { return one.image == image; }),
                  managed.end());
    if (image->library && !ending)
        legacy_driver().cuLibraryUnload(image->library);
    delete image;
}

} // extern "C"
