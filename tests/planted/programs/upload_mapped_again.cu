// An upload to mapped memory, again: where it is, after other memory took its address, or after a write through a
// second address.
// variants: same, other_memory, other_address
#include "planted.h"

#include <cuda.h>

constexpr size_t bytes = 2 << 20;
constexpr int count = bytes / sizeof(int);

const CUmemAllocationProp on_device = [] {
    CUmemAllocationProp properties = {};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    return properties;
}();

void done(CUresult result)
{
    if (result != CUDA_SUCCESS)
        expect("result", result, CUDA_SUCCESS);
}

CUmemGenericAllocationHandle memory()
{
    CUmemGenericAllocationHandle handle = 0;
    done(cuMemCreate(&handle, bytes, &on_device, 0));
    return handle;
}

void map(CUdeviceptr address, CUmemGenericAllocationHandle handle)
{
    CUmemAccessDesc access = {};
    access.location = on_device.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    done(cuMemMap(address, bytes, 0, handle, 0));
    done(cuMemSetAccess(address, bytes, &access, 1)); // sync: required (undecidable)
}

void program()
{
    check(cudaFree(nullptr)); // the context
    CUdeviceptr here = 0, there = 0;
    done(cuMemAddressReserve(&here, bytes, 0, 0, 0));
    done(cuMemAddressReserve(&there, bytes, 0, 0, 0));
    CUmemGenericAllocationHandle handle = memory();
    int *device = reinterpret_cast<int *>(here);
    int *source = pinned_integers(count, 5);
    int *result = pinned_integers(count);
    map(here, handle);
    UPLOAD_ASYNC(device, source, bytes); // transfer: needed (first)
    if (variant("other_memory")) {
        done(cuMemUnmap(here, bytes)); // sync: other_memory unnecessary, same absent, other_address absent
        map(here, memory());
    } else if (variant("other_address")) {
        map(there, handle);
        check(cudaMemsetAsync(reinterpret_cast<void *>(there), 0, bytes, nullptr));
    }
    // transfer: same no-op (of first), other_memory repeat (of first), other_address repeat (of first)
    UPLOAD_ASYNC(device, source, bytes);
    add_slowly(device, device, count);
    DOWNLOAD_ASYNC(result, device, bytes);
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: required
    expect("sum", sum(result, count), 6LL * count);
}
