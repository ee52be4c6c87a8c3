/* Images that the program loads itself, and their kernels. */
#include "runtime_api.h"

using namespace cudart;

/* This driver ignores the options of the compiler and of the library. */
RUNTIME_CALL cudaLibraryLoadData(cudaLibrary_t *library, const void *code, cudaJitOption *, void **, unsigned int,
                                 cudaLibraryOption *, void **, unsigned int)
{
    return finish(call(legacy_driver().cuLibraryLoadData, reinterpret_cast<CUlibrary *>(library), code, nullptr,
                       nullptr, 0u, nullptr, nullptr, 0u));
}
RUNTIME_CALL cudaLibraryUnload(cudaLibrary_t library)
{
    return finish(call(legacy_driver().cuLibraryUnload, reinterpret_cast<CUlibrary>(library)));
}
RUNTIME_CALL cudaLibraryGetKernel(cudaKernel_t *kernel, cudaLibrary_t library, const char *name)
{
    return finish(call(legacy_driver().cuLibraryGetKernel, reinterpret_cast<CUkernel *>(kernel),
                       reinterpret_cast<CUlibrary>(library), name));
}
RUNTIME_CALL cudaLibraryGetGlobal(void **address, size_t *size, cudaLibrary_t library, const char *name)
{
    return finish(call(legacy_driver().cuLibraryGetGlobal, reinterpret_cast<CUdeviceptr *>(address), size,
                       reinterpret_cast<CUlibrary>(library), name));
}
RUNTIME_CALL cudaKernelSetAttributeForDevice(cudaKernel_t kernel, cudaFuncAttribute which, int value, int ordinal)
{
    return finish(call(legacy_driver().cuKernelSetAttribute, static_cast<CUfunction_attribute>(which), value,
                       reinterpret_cast<CUkernel>(kernel), ordinal));
}
