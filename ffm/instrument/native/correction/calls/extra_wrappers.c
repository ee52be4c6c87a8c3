#include "extra_wrappers.h"

#include <cuda.h>

#include "cache.h"
#include "extras.h"
#include "held.h"
#include "pool.h"

#define ORIGINAL(name, parameters) ((CUresult(*) parameters)ffm_extra_original(FFM_EXTRA_##name))

/* The program sees pooled and cached memory as free. */
static CUresult memory_info(size_t *free, size_t *total)
{
    CUresult result = ORIGINAL(cuMemGetInfo_v2, (size_t *, size_t *))(free, total);
    if (result == CUDA_SUCCESS && free != NULL)
        *free += ffm_pool_hidden_bytes() + ffm_cache_bytes();
    return result;
}

/* A pooled block may be larger than the program requested. */
static CUresult address_range(CUdeviceptr *base, size_t *bytes, CUdeviceptr address)
{
    CUresult result = ORIGINAL(cuMemGetAddressRange_v2, (CUdeviceptr *, size_t *, CUdeviceptr))(base, bytes, address);
    uint64_t asked_base;
    size_t asked_bytes;
    if (result == CUDA_SUCCESS && bytes != NULL && ffm_pool_range(address, &asked_base, &asked_bytes))
        *bytes = asked_bytes;
    return result;
}

static void correct_attribute(CUpointer_attribute attribute, void *value, CUdeviceptr address)
{
    uint64_t base;
    size_t bytes;
    if (attribute == CU_POINTER_ATTRIBUTE_RANGE_SIZE && ffm_pool_range(address, &base, &bytes))
        *(size_t *)value = bytes;
}

static CUresult pointer_attribute(void *value, CUpointer_attribute attribute, CUdeviceptr address)
{
    CUresult result =
        ORIGINAL(cuPointerGetAttribute, (void *, CUpointer_attribute, CUdeviceptr))(value, attribute, address);
    if (result == CUDA_SUCCESS)
        correct_attribute(attribute, value, address);
    return result;
}

static CUresult pointer_attributes(unsigned count, CUpointer_attribute *attributes, void **values, CUdeviceptr address)
{
    CUresult result = ORIGINAL(cuPointerGetAttributes, (unsigned, CUpointer_attribute *, void **, CUdeviceptr))(
        count, attributes, values, address);
    for (unsigned i = 0; result == CUDA_SUCCESS && i < count; i++)
        correct_attribute(attributes[i], values[i], address);
    return result;
}

/* Others learn of the block: it no longer belongs in the pool, and they may write it unseen. */
static void share(CUdeviceptr address)
{
    ffm_pool_share(address);
    ffm_held_unknowable();
}

/* An attribute stays with the memory: the block must not be reused as if it were new. */
static CUresult set_pointer_attribute(const void *value, CUpointer_attribute attribute, CUdeviceptr address)
{
    share(address);
    return ORIGINAL(cuPointerSetAttribute, (const void *, CUpointer_attribute, CUdeviceptr))(value, attribute, address);
}

/* Another process or device keeps a handle to the memory. */
static CUresult share_memory(CUipcMemHandle *handle, CUdeviceptr address)
{
    share(address);
    return ORIGINAL(cuIpcGetMemHandle, (CUipcMemHandle *, CUdeviceptr))(handle, address);
}

static CUresult share_range(void *handle, CUdeviceptr address, size_t bytes, CUmemRangeHandleType type,
                            unsigned long long flags)
{
    share(address);
    return ORIGINAL(cuMemGetHandleForAddressRange, (void *, CUdeviceptr, size_t, CUmemRangeHandleType,
                                                    unsigned long long))(handle, address, bytes, type, flags);
}

static CUresult export_pointer(CUmemPoolPtrExportData *data, CUdeviceptr address)
{
    share(address);
    return ORIGINAL(cuMemPoolExportPointer, (CUmemPoolPtrExportData *, CUdeviceptr))(data, address);
}

static CUresult device_attribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    return ORIGINAL(cuDeviceGetAttribute, (int *, CUdevice_attribute, CUdevice))(value, attribute, device);
}

static CUresult primary_state(CUdevice device, unsigned *flags, int *active)
{
    return ORIGINAL(cuDevicePrimaryCtxGetState, (CUdevice, unsigned *, int *))(device, flags, active);
}

static CUresult function_parameter(CUfunction function, size_t index, size_t *offset, size_t *bytes)
{
    return ORIGINAL(cuFuncGetParamInfo, (CUfunction, size_t, size_t *, size_t *))(function, index, offset, bytes);
}

static CUresult kernel_parameter(CUkernel kernel, size_t index, size_t *offset, size_t *bytes)
{
    return ORIGINAL(cuKernelGetParamInfo, (CUkernel, size_t, size_t *, size_t *))(kernel, index, offset, bytes);
}

void *ffm_extra_wrapper(uint32_t extra)
{
    static void *const wrappers[FFM_EXTRA_COUNT] = {
        [FFM_EXTRA_cuMemGetInfo_v2] = memory_info,
        [FFM_EXTRA_cuMemGetAddressRange_v2] = address_range,
        [FFM_EXTRA_cuPointerGetAttribute] = pointer_attribute,
        [FFM_EXTRA_cuPointerGetAttributes] = pointer_attributes,
        [FFM_EXTRA_cuPointerSetAttribute] = set_pointer_attribute,
        [FFM_EXTRA_cuIpcGetMemHandle] = share_memory,
        [FFM_EXTRA_cuMemGetHandleForAddressRange] = share_range,
        [FFM_EXTRA_cuMemPoolExportPointer] = export_pointer,
        [FFM_EXTRA_cuDeviceGetAttribute] = device_attribute,
        [FFM_EXTRA_cuDevicePrimaryCtxGetState] = primary_state,
        [FFM_EXTRA_cuFuncGetParamInfo] = function_parameter,
        [FFM_EXTRA_cuKernelGetParamInfo] = kernel_parameter,
    };
    return extra < FFM_EXTRA_COUNT ? wrappers[extra] : NULL;
}
