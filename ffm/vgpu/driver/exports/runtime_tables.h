/* The private tables that NVIDIA's runtime asks for by cuGetExportTable. */
#pragma once

#include "foundation/cuda_api.h"

namespace vgpu
{

/* The table of that key; null where it is none of NVIDIA's that are known here. */
const void *runtime_table(const CUuuid &id);

} // namespace vgpu
