#include "driver_table.h"

#include <algorithm>
#include <dlfcn.h>
#include <mutex>

#include "../include/open_driver.h"

namespace cudart
{

namespace
{

DriverTable legacy, per_thread;

using GetProcAddress = decltype(&::cuGetProcAddress_v2);

constexpr int first_per_thread = 7000; /* the first version of CUDA with per-thread default streams */

/* Fills the table with the forms of `oldest` and newer. */
CUresult fill(DriverTable &table, GetProcAddress get, cuuint64_t flags, int oldest)
{
#define DRIVER_ENTRY(name, symbol, version)                                                                            \
    {                                                                                                                  \
        void *address = nullptr;                                                                                       \
        if (get(#name, &address, std::max(version, oldest), flags, nullptr) != CUDA_SUCCESS || !address)               \
            return CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER;                                                              \
        table.name = reinterpret_cast<decltype(&::symbol)>(address);                                                   \
    }
#include "driver_entries.def"
#undef DRIVER_ENTRY
    return CUDA_SUCCESS;
}

CUresult load()
{
    void *library = open_driver();
    if (!library)
        return CUDA_ERROR_STUB_LIBRARY;
    auto get = reinterpret_cast<GetProcAddress>(dlsym(library, "cuGetProcAddress_v2"));
    if (!get)
        return CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER;
    CUresult result = fill(legacy, get, CU_GET_PROC_ADDRESS_LEGACY_STREAM, 0);
    return result != CUDA_SUCCESS
               ? result
               : fill(per_thread, get, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, first_per_thread);
}

} // namespace

const DriverTable &legacy_driver()
{
    load_driver();
    return legacy;
}

const DriverTable &per_thread_driver()
{
    load_driver();
    return per_thread;
}

CUresult load_driver()
{
    static std::once_flag once;
    static CUresult result;
    std::call_once(once, [] { result = load(); });
    return result;
}

} // namespace cudart
