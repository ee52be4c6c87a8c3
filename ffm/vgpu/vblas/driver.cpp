#include "driver.h"

#include <dlfcn.h>
#include <type_traits>

#include "../include/open_driver.h"

namespace vblas
{

namespace
{

/* Every entry point comes from cuGetProcAddress, by name and by the CUDA version that introduced it. */
bool load(Driver &driver)
{
    void *library = open_driver();
    if (!library)
        return false;
    auto get = reinterpret_cast<decltype(&::cuGetProcAddress)>(dlsym(library, "cuGetProcAddress_v2"));
    if (!get)
        return false;
    bool complete = true;
    auto entry = [&](auto &target, const char *name, int version) {
        void *address = nullptr;
        if (get(name, &address, version, CU_GET_PROC_ADDRESS_LEGACY_STREAM, nullptr) != CUDA_SUCCESS || !address)
            complete = false;
        target = reinterpret_cast<std::remove_reference_t<decltype(target)>>(address);
    };
    decltype(&::cuGetExportTable) get_table = nullptr;
    entry(get_table, "cuGetExportTable", 3000);
    entry(driver.init, "cuInit", 2000);
    entry(driver.get_current_context, "cuCtxGetCurrent", 4000);
    entry(driver.set_current_context, "cuCtxSetCurrent", 4000);
    entry(driver.retain_primary_context, "cuDevicePrimaryCtxRetain", 7000);
    entry(driver.allocate, "cuMemAlloc", 3020);
    entry(driver.free, "cuMemFree", 3020);
    entry(driver.load_library, "cuLibraryLoadData", 12000);
    entry(driver.get_kernel, "cuLibraryGetKernel", 12000);
    const void *table = nullptr;
    if (!complete || get_table(&table, &vgpu::private_table_id) != CUDA_SUCCESS)
        return false;
    driver.table = static_cast<const vgpu::PrivateTable *>(table);
    return driver.table->size >= sizeof(vgpu::PrivateTable) && driver.init(0) == CUDA_SUCCESS;
}

} // namespace

const Driver *driver()
{
    static Driver loaded;
    static const bool usable = load(loaded);
    return usable ? &loaded : nullptr;
}

} // namespace vblas
