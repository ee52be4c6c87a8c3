/* Memory pools: device memory that is allocated and freed in the order of a stream. */
#pragma once

#include "memory.h"

namespace vgpu
{

/* Gives unused memory of all pools back to the device; false when there was none. */
bool trim_pools();

/* Tells the pool that one of its allocations was freed by cuMemFree. */
void forget_pool_allocation(const Allocation &allocation);

} // namespace vgpu
