/* The driver as libvblas reaches it: a few public entries, and the private table. */
#pragma once

#include <cuda.h>

#include "../driver/exports/private_table.h"

namespace vblas
{

struct Driver {
    decltype(&::cuInit) init;
    decltype(&::cuCtxGetCurrent) get_current_context;
    decltype(&::cuCtxSetCurrent) set_current_context;
    decltype(&::cuDevicePrimaryCtxRetain) retain_primary_context;
    decltype(&::cuMemAlloc) allocate;
    decltype(&::cuMemFree) free;
    decltype(&::cuLibraryLoadData) load_library;
    decltype(&::cuLibraryGetKernel) get_kernel;
    const vgpu::PrivateTable *table;
};

/* The driver, found once; null where there is none, or where it has no private table. */
const Driver *driver();

} // namespace vblas
