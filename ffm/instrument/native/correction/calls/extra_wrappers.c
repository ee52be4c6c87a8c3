#include "extra_wrappers.h"

#include <cuda.h>

#include "cache.h"
#include "extras.h"
#include "held.h"
#include "pool.h"
#include "state.h"

#define ORIGINAL(purpose, parameters) ((CUresult(*) parameters)ffm_extra_original(FFM_EXTRA_##purpose))

/* The program sees pooled and cached memory as free. What another thread puts into the pool meanwhile may count twice,
 * but no more is free than the device has. */
static CUresult memory_info(size_t *free, size_t *total)
{
    size_t most;
    size_t *const has = total != NULL ? total : &most;
    CUresult result = ORIGINAL(MEMORY_INFO, (size_t *, size_t *))(free, has);
    if (result != CUDA_SUCCESS || free == NULL)
        return result;
    *free += ffm_pool_hidden_bytes() + ffm_cache_bytes();
    if (*free > *has)
        *free = *has;
    return result;
}

/* A pooled block may be larger than the program requested. */
static CUresult address_range(CUdeviceptr *base, size_t *bytes, CUdeviceptr address)
{
    ffm_pool_asked(address);
    CUresult result = ORIGINAL(ADDRESS_RANGE, (CUdeviceptr *, size_t *, CUdeviceptr))(base, bytes, address);
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
    ffm_pool_asked(address);
    CUresult result =
        ORIGINAL(POINTER_ATTRIBUTE, (void *, CUpointer_attribute, CUdeviceptr))(value, attribute, address);
    if (result == CUDA_SUCCESS)
        correct_attribute(attribute, value, address);
    return result;
}

static CUresult pointer_attributes(unsigned count, CUpointer_attribute *attributes, void **values, CUdeviceptr address)
{
    ffm_pool_asked(address);
    CUresult result = ORIGINAL(POINTER_ATTRIBUTES, (unsigned, CUpointer_attribute *, void **, CUdeviceptr))(
        count, attributes, values, address);
    for (unsigned i = 0; result == CUDA_SUCCESS && i < count; i++)
        correct_attribute(attributes[i], values[i], address);
    return result;
}

/* An attribute stays with the memory: the block must not be reused as if it were new. Other devices may reach memory
 * that is prepared for them, after any wait of the program. */
static CUresult set_pointer_attribute(const void *value, CUpointer_attribute attribute, CUdeviceptr address)
{
    ffm_pool_share(address);
    ffm_held_unknowable();
    const CUresult result =
        ORIGINAL(SET_POINTER_ATTRIBUTE, (const void *, CUpointer_attribute, CUdeviceptr))(value, attribute, address);
    if (result == CUDA_SUCCESS)
        ffm_stop(FFM_STOP_SHARED);
    return result;
}

static CUresult device_attribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    return ORIGINAL(DEVICE_ATTRIBUTE, (int *, CUdevice_attribute, CUdevice))(value, attribute, device);
}

static CUresult primary_state(CUdevice device, unsigned *flags, int *active)
{
    return ORIGINAL(PRIMARY_STATE, (CUdevice, unsigned *, int *))(device, flags, active);
}

static CUresult function_parameter(CUfunction function, size_t index, size_t *offset, size_t *bytes)
{
    return ORIGINAL(FUNCTION_PARAMETER, (CUfunction, size_t, size_t *, size_t *))(function, index, offset, bytes);
}

static CUresult kernel_parameter(CUkernel kernel, size_t index, size_t *offset, size_t *bytes)
{
    return ORIGINAL(KERNEL_PARAMETER, (CUkernel, size_t, size_t *, size_t *))(kernel, index, offset, bytes);
}

void *ffm_extra_wrapper(uint32_t extra)
{
    static void *const wrappers[FFM_EXTRA_COUNT] = {
        [FFM_EXTRA_MEMORY_INFO] = memory_info,
        [FFM_EXTRA_ADDRESS_RANGE] = address_range,
        [FFM_EXTRA_POINTER_ATTRIBUTE] = pointer_attribute,
        [FFM_EXTRA_POINTER_ATTRIBUTES] = pointer_attributes,
        [FFM_EXTRA_SET_POINTER_ATTRIBUTE] = set_pointer_attribute,
        [FFM_EXTRA_DEVICE_ATTRIBUTE] = device_attribute,
        [FFM_EXTRA_PRIMARY_STATE] = primary_state,
        [FFM_EXTRA_FUNCTION_PARAMETER] = function_parameter,
        [FFM_EXTRA_KERNEL_PARAMETER] = kernel_parameter,
    };
    return extra < FFM_EXTRA_COUNT ? wrappers[extra] : NULL;
}
