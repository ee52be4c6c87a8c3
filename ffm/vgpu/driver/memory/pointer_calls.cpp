/* cuPointerGetAttribute and cuPointerGetAttributes: what the driver knows about an address. */
#include <cstring>

#include "contexts/context.h"
#include "memory.h"

using namespace vgpu;

namespace
{

template <typename Value> CUresult answer(void *data, Value value)
{
    std::memcpy(data, &value, sizeof value);
    return CUDA_SUCCESS;
}

CUmemorytype type_of(const Allocation &allocation)
{
    bool host = allocation.kind == MemoryKind::pinned || allocation.kind == MemoryKind::registered;
    return host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
}

/* Returns CUDA_ERROR_INVALID_VALUE for attributes that have no meaning for the allocation. */
CUresult attribute_of(void *data, CUpointer_attribute attribute, CUdeviceptr address, const Allocation &allocation)
{
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        return answer(data, allocation.context);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        return answer(data, type_of(allocation));
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        return answer(data, address);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        if (allocation.kind == MemoryKind::device)
            return CUDA_ERROR_INVALID_VALUE;
        return answer(data, reinterpret_cast<void *>(address));
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        return answer<unsigned>(data, 0);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        return answer<unsigned long long>(data, allocation.id);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        return answer<unsigned>(data, allocation.kind == MemoryKind::managed);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        return answer<int>(data, allocation.device);
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
        return answer<int>(data, 0);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        return answer<CUdeviceptr>(data, allocation.address);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        return answer<std::size_t>(data, allocation.size);
    case CU_POINTER_ATTRIBUTE_MAPPED:
        return answer<int>(data, 1);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        return answer<unsigned long long>(data, 0);
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        return answer<int>(data, CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE);
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        return answer(data, allocation.pool);
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

/* What cuPointerGetAttributes stores for an unknown address: zero, and -2 for the device. */
void answer_unknown(void *data, CUpointer_attribute attribute)
{
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        answer<int>(data, -2);
        break;
    case CU_POINTER_ATTRIBUTE_CONTEXT:
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        answer<std::uint64_t>(data, 0);
        break;
    default:
        answer<int>(data, 0);
        break;
    }
}

} // namespace

DRIVER_CALL(cuPointerGetAttribute)(void *data, CUpointer_attribute attribute, CUdeviceptr address)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    Allocation allocation;
    if (!data || !find_allocation(address, allocation))
        return CUDA_ERROR_INVALID_VALUE;
    return attribute_of(data, attribute, address, allocation);
}

DRIVER_CALL(cuPointerGetAttributes)(unsigned int count, CUpointer_attribute *attributes, void **data,
                                    CUdeviceptr address)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!attributes || !data)
        return CUDA_ERROR_INVALID_VALUE;
    Allocation allocation;
    bool known = find_allocation(address, allocation);
    for (unsigned index = 0; index < count; ++index) {
        if (!known || attribute_of(data[index], attributes[index], address, allocation) != CUDA_SUCCESS)
            answer_unknown(data[index], attributes[index]);
    }
    return CUDA_SUCCESS;
}
