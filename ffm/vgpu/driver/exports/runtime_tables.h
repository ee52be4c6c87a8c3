/* The private tables that NVIDIA's runtime requests with cuGetExportTable. */
#pragma once

#include "foundation/cuda_api.h"

namespace vgpu
{

/* The table with that key; null if it is not one of NVIDIA's that are known here. */
const void *runtime_table(const CUuuid &id);

} // namespace vgpu
