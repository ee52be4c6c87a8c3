/* Devices, versions and driver entry points. */
#include <cstring>

#include "runtime_api.h"

using namespace cudart;

namespace
{

int attribute(CUdevice_attribute which, int ordinal)
{
    int value = 0;
    legacy_driver().cuDeviceGetAttribute(&value, which, ordinal);
    return value;
}

cudaError_t check(int ordinal)
{
    cudaError_t error = initialised();
    CUdevice found;
    return error != cudaSuccess ? error : from(legacy_driver().cuDeviceGet(&found, ordinal));
}

struct Field {
    int cudaDeviceProp::*field;
    CUdevice_attribute attribute;
};

const Field fields[] = {
    {&cudaDeviceProp::regsPerBlock, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK},
    {&cudaDeviceProp::warpSize, CU_DEVICE_ATTRIBUTE_WARP_SIZE},
    {&cudaDeviceProp::maxThreadsPerBlock, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK},
    {&cudaDeviceProp::major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR},
    {&cudaDeviceProp::minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR},
    {&cudaDeviceProp::multiProcessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT},
    {&cudaDeviceProp::integrated, CU_DEVICE_ATTRIBUTE_INTEGRATED},
    {&cudaDeviceProp::canMapHostMemory, CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY},
    {&cudaDeviceProp::concurrentKernels, CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS},
    {&cudaDeviceProp::ECCEnabled, CU_DEVICE_ATTRIBUTE_ECC_ENABLED},
    {&cudaDeviceProp::pciBusID, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID},
    {&cudaDeviceProp::pciDeviceID, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID},
    {&cudaDeviceProp::pciDomainID, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID},
    {&cudaDeviceProp::asyncEngineCount, CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT},
    {&cudaDeviceProp::unifiedAddressing, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING},
    {&cudaDeviceProp::memoryBusWidth, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH},
    {&cudaDeviceProp::l2CacheSize, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE},
    {&cudaDeviceProp::maxThreadsPerMultiProcessor, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR},
    {&cudaDeviceProp::streamPrioritiesSupported, CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED},
    {&cudaDeviceProp::globalL1CacheSupported, CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED},
    {&cudaDeviceProp::localL1CacheSupported, CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED},
    {&cudaDeviceProp::regsPerMultiprocessor, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR},
    {&cudaDeviceProp::managedMemory, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY},
    {&cudaDeviceProp::pageableMemoryAccess, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS},
    {&cudaDeviceProp::concurrentManagedAccess, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS},
    {&cudaDeviceProp::computePreemptionSupported, CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED},
    {&cudaDeviceProp::canUseHostPointerForRegisteredMem, CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM},
    {&cudaDeviceProp::cooperativeLaunch, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH},
    {&cudaDeviceProp::maxBlocksPerMultiProcessor, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR},
    {&cudaDeviceProp::hostRegisterSupported, CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED},
    {&cudaDeviceProp::hostRegisterReadOnlySupported, CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED},
    {&cudaDeviceProp::memoryPoolsSupported, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED},
    {&cudaDeviceProp::deviceNumaId, CU_DEVICE_ATTRIBUTE_NUMA_ID},
    {&cudaDeviceProp::hostNumaId, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID},
};

} // namespace

RUNTIME_CALL cudaGetDeviceCount(int *count)
{
    cudaError_t error = initialised();
    return finish(error != cudaSuccess ? error : from(legacy_driver().cuDeviceGetCount(count)));
}

RUNTIME_CALL cudaGetDevice(int *ordinal)
{
    return finish(ordinal ? used_device(*ordinal) : cudaErrorInvalidValue);
}

/* Creates the device's context, as the runtime does since CUDA 12. */
RUNTIME_CALL cudaSetDevice(int ordinal)
{
    return finish(use_device(ordinal));
}

RUNTIME_CALL cudaDeviceGetAttribute(int *value, cudaDeviceAttr which, int ordinal)
{
    cudaError_t error = check(ordinal);
    return finish(error != cudaSuccess ? error
                                       : from(legacy_driver().cuDeviceGetAttribute(
                                             value, static_cast<CUdevice_attribute>(which), ordinal)));
}

RUNTIME_CALL cudaGetDeviceProperties(cudaDeviceProp *properties, int ordinal)
{
    cudaError_t error = properties ? check(ordinal) : cudaErrorInvalidValue;
    if (error != cudaSuccess)
        return finish(error);
    const DriverTable &driver = legacy_driver();
    std::memset(properties, 0, sizeof *properties);
    driver.cuDeviceGetName(properties->name, sizeof properties->name, ordinal);
    driver.cuDeviceGetUuid(&properties->uuid, ordinal);
    driver.cuDeviceTotalMem(&properties->totalGlobalMem, ordinal);
    for (const Field &field : fields)
        properties->*(field.field) = attribute(field.attribute, ordinal);
    auto size = [ordinal](CUdevice_attribute which) { return static_cast<std::size_t>(attribute(which, ordinal)); };
    properties->sharedMemPerBlock = size(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
    properties->sharedMemPerBlockOptin = size(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    properties->sharedMemPerMultiprocessor = size(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
    properties->memPitch = size(CU_DEVICE_ATTRIBUTE_MAX_PITCH);
    properties->totalConstMem = size(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
    properties->textureAlignment = size(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
    properties->texturePitchAlignment = size(CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT);
    for (int axis = 0; axis < 3; ++axis) {
        properties->maxThreadsDim[axis] =
            attribute(static_cast<CUdevice_attribute>(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + axis), ordinal);
        properties->maxGridSize[axis] =
            attribute(static_cast<CUdevice_attribute>(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + axis), ordinal);
    }
    return cudaSuccess;
}

RUNTIME_CALL cudaDeviceGetPCIBusId(char *text, int length, int ordinal)
{
    cudaError_t error = check(ordinal);
    return finish(error != cudaSuccess ? error : from(legacy_driver().cuDeviceGetPCIBusId(text, length, ordinal)));
}

RUNTIME_CALL cudaDeviceGetByPCIBusId(int *ordinal, const char *text)
{
    cudaError_t error = initialised();
    return finish(error != cudaSuccess ? error : from(legacy_driver().cuDeviceGetByPCIBusId(ordinal, text)));
}

RUNTIME_CALL cudaSetDeviceFlags(unsigned int flags)
{
    int ordinal = 0;
    cudaError_t error = used_device(ordinal);
    return finish(error != cudaSuccess ? error : from(legacy_driver().cuDevicePrimaryCtxSetFlags(ordinal, flags)));
}

RUNTIME_CALL cudaDeviceGetLimit(size_t *value, cudaLimit limit)
{
    return finish(call(legacy_driver().cuCtxGetLimit, value, static_cast<CUlimit>(limit)));
}
RUNTIME_CALL cudaDeviceSetLimit(cudaLimit limit, size_t value)
{
    return finish(call(legacy_driver().cuCtxSetLimit, static_cast<CUlimit>(limit), value));
}

RUNTIME_CALL cudaGetDeviceFlags(unsigned int *flags)
{
    return finish(flags ? call(legacy_driver().cuCtxGetFlags, flags) : cudaErrorInvalidValue);
}
RUNTIME_CALL cudaDeviceGetCacheConfig(cudaFuncCache *config)
{
    return finish(call(legacy_driver().cuCtxGetCacheConfig, reinterpret_cast<CUfunc_cache *>(config)));
}
RUNTIME_CALL cudaDeviceSetCacheConfig(cudaFuncCache config)
{
    return finish(call(legacy_driver().cuCtxSetCacheConfig, static_cast<CUfunc_cache>(config)));
}
RUNTIME_CALL cudaDeviceCanAccessPeer(int *can, int ordinal, int peer)
{
    cudaError_t error = check(ordinal);
    return finish(error != cudaSuccess ? error : from(legacy_driver().cuDeviceCanAccessPeer(can, ordinal, peer)));
}

/* A device is not its own peer. */
static cudaError_t peer_context(int peer, CUcontext &context)
{
    int ordinal = 0;
    cudaError_t error = used_device(ordinal);
    if (error != cudaSuccess)
        return error;
    return peer == ordinal ? cudaErrorInvalidDevice : context_of(peer, context);
}
RUNTIME_CALL cudaDeviceEnablePeerAccess(int peer, unsigned int flags)
{
    CUcontext context = nullptr;
    cudaError_t error = peer_context(peer, context);
    return finish(error != cudaSuccess ? error : call(legacy_driver().cuCtxEnablePeerAccess, context, flags));
}
RUNTIME_CALL cudaDeviceDisablePeerAccess(int peer)
{
    CUcontext context = nullptr;
    cudaError_t error = peer_context(peer, context);
    return finish(error != cudaSuccess ? error : call(legacy_driver().cuCtxDisablePeerAccess, context));
}
RUNTIME_CALL cudaDeviceGetP2PAttribute(int *value, cudaDeviceP2PAttr which, int ordinal, int peer)
{
    cudaError_t error = check(ordinal);
    return finish(error != cudaSuccess ? error
                                       : from(legacy_driver().cuDeviceGetP2PAttribute(
                                             value, static_cast<CUdevice_P2PAttribute>(which), ordinal, peer)));
}

RUNTIME_CALL cudaProfilerStart(void)
{
    return finish(call(legacy_driver().cuProfilerStart));
}
RUNTIME_CALL cudaProfilerStop(void)
{
    return finish(call(legacy_driver().cuProfilerStop));
}

RUNTIME_CALL cudaRuntimeGetVersion(int *version)
{
    if (!version)
        return finish(cudaErrorInvalidValue);
    *version = CUDART_VERSION;
    return cudaSuccess;
}

/* Without a driver, the version is zero and there is no error. */
RUNTIME_CALL cudaDriverGetVersion(int *version)
{
    if (!version)
        return finish(cudaErrorInvalidValue);
    *version = 0;
    return load_driver() == CUDA_SUCCESS ? finish(from(legacy_driver().cuDriverGetVersion(version))) : cudaSuccess;
}

static cudaError_t entry_point(const char *name, void **address, int version, unsigned long long flags, bool per_thread,
                               cudaDriverEntryPointQueryResult *status)
{
    cudaError_t error = initialised();
    if (error != cudaSuccess)
        return error;
    if (flags == cudaEnableDefault)
        flags = per_thread ? cudaEnablePerThreadDefaultStream : cudaEnableLegacyStream;
    CUdriverProcAddressQueryResult found;
    CUresult result = legacy_driver().cuGetProcAddress(name, address, version, flags, &found);
    if (status)
        *status = static_cast<cudaDriverEntryPointQueryResult>(found);
    return from(result);
}

RUNTIME_CALL cudaGetDriverEntryPointByVersion(const char *name, void **address, unsigned int version,
                                              unsigned long long flags, cudaDriverEntryPointQueryResult *status)
{
    return finish(entry_point(name, address, static_cast<int>(version), flags, false, status));
}
RUNTIME_CALL cudaGetDriverEntryPointByVersion_ptsz(const char *name, void **address, unsigned int version,
                                                   unsigned long long flags, cudaDriverEntryPointQueryResult *status)
{
    return finish(entry_point(name, address, static_cast<int>(version), flags, true, status));
}
