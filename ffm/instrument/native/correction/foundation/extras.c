#include "extras.h"

#include <cuda.h>

static void *originals[FFM_EXTRA_COUNT];
static const void *addresses[FFM_EXTRA_COUNT];

void *ffm_extra_original(uint32_t extra)
{
    void *code;
    /* Another thread can arrive between the patch and the bind that follows it. */
    while ((code = __atomic_load_n(&originals[extra], __ATOMIC_ACQUIRE)) == NULL)
        __builtin_ia32_pause();
    return code;
}

/* The driver may have no such function, or it may not be hooked yet. */
static bool is_known(uint32_t extra)
{
    return __atomic_load_n(&originals[extra], __ATOMIC_ACQUIRE) != NULL;
}

#define ORIGINAL(purpose, parameters) ((CUresult(*) parameters)ffm_extra_original(FFM_EXTRA_##purpose))

void ffm_extra_bind(uint32_t extra, const void *address, void *code)
{
    __atomic_store_n(&addresses[extra], address, __ATOMIC_RELEASE);
    __atomic_store_n(&originals[extra], code, __ATOMIC_RELEASE);
}

bool ffm_extra_is_bound(const void *address)
{
    for (uint32_t i = 0; i < FFM_EXTRA_COUNT; i++)
        if (__atomic_load_n(&addresses[i], __ATOMIC_ACQUIRE) == address)
            return true;
    return false;
}

bool ffm_primary_active(uint64_t device)
{
    unsigned flags;
    int active = 1;
    if (!is_known(FFM_EXTRA_PRIMARY_STATE) ||
        ORIGINAL(PRIMARY_STATE, (CUdevice, unsigned *, int *))((CUdevice)device, &flags, &active) != CUDA_SUCCESS)
        return true;
    return active != 0;
}

bool ffm_is_managed(uint64_t address)
{
    unsigned managed = 0;
    return is_known(FFM_EXTRA_POINTER_ATTRIBUTE) &&
           ORIGINAL(POINTER_ATTRIBUTE, (void *, CUpointer_attribute, CUdeviceptr))(
               &managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address) == CUDA_SUCCESS &&
           managed != 0;
}

ffm_place ffm_place_of(uint64_t address)
{
    unsigned type = 0;
    if (!is_known(FFM_EXTRA_POINTER_ATTRIBUTE))
        return FFM_PLACE_UNKNOWN;
    CUresult result = ORIGINAL(POINTER_ATTRIBUTE, (void *, CUpointer_attribute, CUdeviceptr))(
        &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);
    if (result == CUDA_ERROR_INVALID_VALUE)
        return FFM_PLACE_PAGEABLE;
    if (result != CUDA_SUCCESS || ffm_is_managed(address))
        return FFM_PLACE_UNKNOWN;
    return type == CU_MEMORYTYPE_DEVICE ? FFM_PLACE_DEVICE
           : type == CU_MEMORYTYPE_HOST ? FFM_PLACE_HOST
                                        : FFM_PLACE_UNKNOWN;
}

/* Whether some device has a property; true if the driver cannot say. */
static bool some_device_has(CUdevice_attribute property)
{
    if (!is_known(FFM_EXTRA_DEVICE_ATTRIBUTE))
        return true;
    int value = 0;
    for (CUdevice device = 0; value == 0 && ORIGINAL(DEVICE_ATTRIBUTE, (int *, CUdevice_attribute, CUdevice))(
                                                &value, property, device) == CUDA_SUCCESS;
         device++)
        continue;
    return value != 0;
}

bool ffm_ordinary_memory_is_read_later(void)
{
    return some_device_has(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES);
}

bool ffm_ordinary_memory_is_used(void)
{
    enum { UNKNOWN, NO, YES };
    static int known = UNKNOWN;
    int answer = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (answer == UNKNOWN) {
        answer = some_device_has(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS) ? YES : NO;
        __atomic_store_n(&known, answer, __ATOMIC_RELAXED);
    }
    return answer == YES;
}

size_t ffm_free_device_memory(void)
{
    size_t free = 0, total = 0;
    if (!is_known(FFM_EXTRA_MEMORY_INFO) || ORIGINAL(MEMORY_INFO, (size_t *, size_t *))(&free, &total) != CUDA_SUCCESS)
        return 0;
    return free;
}

bool ffm_parameters_known(void)
{
    return is_known(FFM_EXTRA_FUNCTION_PARAMETER) && is_known(FFM_EXTRA_KERNEL_PARAMETER);
}

int ffm_parameter(uint64_t function, bool kernel, size_t index, size_t *offset, size_t *bytes)
{
    if (kernel)
        return (int)ORIGINAL(KERNEL_PARAMETER, (CUkernel, size_t, size_t *, size_t *))((CUkernel)function, index,
                                                                                       offset, bytes);
    return (int)ORIGINAL(FUNCTION_PARAMETER, (CUfunction, size_t, size_t *, size_t *))((CUfunction)function, index,
                                                                                       offset, bytes);
}
