/* cuGetProcAddress: finds an export by name, version and default-stream variant. */
#include <cstring>

#include "foundation/cuda_api.h"
#include "foundation/refusal.h"

/* The exports themselves. `stubs.cpp` defines them. */
#define ENTRY(symbol, name, version, flavour) extern "C" decltype(::symbol) symbol;
#include "exports.def"
#undef ENTRY

namespace
{

enum Flavour { LEGACY, PER_THREAD };

struct NamedEntry {
    const char *name;
    int version; /* the CUDA version that introduced this form: 1000 * major + 10 * minor */
    Flavour flavour;
    void *address;
};

#define ENTRY(symbol, name, version, flavour) {#name, version, flavour, reinterpret_cast<void *>(&::symbol)},
const NamedEntry entries[] = {
#include "exports.def"
};
#undef ENTRY

/* Finds the newest form that existed in `version`. The requested default-stream variant is preferred. */
CUdriverProcAddressQueryResult find(const char *name, int version, bool per_thread, void **address)
{
    const NamedEntry *best = nullptr;
    bool name_exists = false;
    for (const NamedEntry &entry : entries) {
        if (std::strcmp(entry.name, name) != 0)
            continue;
        name_exists = true;
        if (entry.version > version || (entry.flavour == PER_THREAD && !per_thread))
            continue;
        if (!best || entry.flavour > best->flavour || (entry.flavour == best->flavour && entry.version > best->version))
            best = &entry;
    }
    *address = best ? best->address : nullptr;
    if (!best)
        vgpu::refused("the function %s of CUDA %d", name, version);
    if (best)
        return CU_GET_PROC_ADDRESS_SUCCESS;
    return name_exists ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
}

bool valid(const char *name, void **address, cuuint64_t flags)
{
    constexpr cuuint64_t known = CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    return name && address && (flags & ~known) == 0;
}

bool per_thread(cuuint64_t flags)
{
    return (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
}

} // namespace

/* The form of CUDA 11. An unknown function gives CUDA_ERROR_NOT_FOUND and leaves `*address` unchanged. */
DRIVER_CALL(cuGetProcAddress)(const char *name, void **address, int version, cuuint64_t flags)
{
    if (!valid(name, address, flags))
        return CUDA_ERROR_INVALID_VALUE;
    void *found;
    if (find(name, version, per_thread(flags), &found) != CU_GET_PROC_ADDRESS_SUCCESS)
        return CUDA_ERROR_NOT_FOUND;
    *address = found;
    return CUDA_SUCCESS;
}

/* The form of CUDA 12. An unknown function gives success, a null `*address`, and the cause in `*status`. */
DRIVER_CALL(cuGetProcAddress_v2)(const char *name, void **address, int version, cuuint64_t flags,
                                 CUdriverProcAddressQueryResult *status)
{
    if (!valid(name, address, flags))
        return CUDA_ERROR_INVALID_VALUE;
    CUdriverProcAddressQueryResult result = find(name, version, per_thread(flags), address);
    if (status)
        *status = result;
    return CUDA_SUCCESS;
}
