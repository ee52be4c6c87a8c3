/* cuGetProcAddress: the address of an export, by name, version and flavour of the default stream. */
#include <cstring>

#include "cuda_api.h"

/* The exports themselves, which `stubs.cpp` defines. */
#define ENTRY(symbol, name, version, flavour) extern "C" decltype(::symbol) symbol;
#include "exports.def"
#undef ENTRY

namespace {

enum Flavour { LEGACY, PER_THREAD };

struct Entry {
    const char *name;
    int version; /* of CUDA, 1000 * major + 10 * minor, that brought this form of the function */
    Flavour flavour;
    void *address;
};

#define ENTRY(symbol, name, version, flavour) {#name, version, flavour, reinterpret_cast<void *>(&::symbol)},
const Entry entries[] = {
#include "exports.def"
};
#undef ENTRY

constexpr int driver_version = 13000;

/* The newest form that `version` knows, in the wanted flavour before the other. */
CUdriverProcAddressQueryResult find(const char *name, int version, bool per_thread, void **address) {
    const Entry *best = nullptr;
    bool name_exists = false;
    for (const Entry &entry : entries) {
        if (std::strcmp(entry.name, name) != 0)
            continue;
        name_exists = true;
        if (entry.version > version || (entry.flavour == PER_THREAD && !per_thread))
            continue;
        if (!best || entry.flavour > best->flavour ||
            (entry.flavour == best->flavour && entry.version > best->version))
            best = &entry;
    }
    *address = best ? best->address : nullptr;
    if (best)
        return CU_GET_PROC_ADDRESS_SUCCESS;
    return name_exists ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
}

CUresult look_up(const char *name, void **address, int version, cuuint64_t flags,
                 CUdriverProcAddressQueryResult &status) {
    constexpr cuuint64_t known =
        CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    if (!name || !address || (flags & ~known) != 0 || version > driver_version)
        return CUDA_ERROR_INVALID_VALUE;
    status = find(name, version, (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0, address);
    return status == CU_GET_PROC_ADDRESS_SUCCESS ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

} // namespace

DRIVER_CALL(cuGetProcAddress)(const char *name, void **address, int version, cuuint64_t flags) {
    CUdriverProcAddressQueryResult status;
    return look_up(name, address, version, flags, status);
}

DRIVER_CALL(cuGetProcAddress_v2)(const char *name, void **address, int version, cuuint64_t flags,
                                 CUdriverProcAddressQueryResult *status) {
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    CUresult result = look_up(name, address, version, flags, found);
    if (status)
        *status = found;
    return result;
}
