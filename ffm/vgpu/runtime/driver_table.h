/* The driver's entry points that the runtime uses, all obtained from cuGetProcAddress. */
#pragma once

#include "../driver/foundation/cuda_api.h"

namespace cudart
{

struct DriverTable {
#define DRIVER_ENTRY(name, symbol, version) decltype(&::symbol) name = nullptr;
#include "driver_entries.def"
#undef DRIVER_ENTRY
};

/* The tables for both variants of the default stream; their entries are null until load_driver has succeeded. */
const DriverTable &legacy_driver();
const DriverTable &per_thread_driver();

/* Opens libcuda.so.1 and fills both tables, once. CUDA_ERROR_STUB_LIBRARY if there is no driver,
 * CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER if it lacks an entry. */
CUresult load_driver();

} // namespace cudart
