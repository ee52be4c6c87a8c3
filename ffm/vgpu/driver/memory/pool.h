/* Memory pools: device memory that is allocated and freed in the order of a stream. */
#pragma once

#include "memory.h"

namespace vgpu
{

/* Returns unused memory of all of the device's pools to it; false if there was none. */
bool trim_pools(CUdevice device);

/* Whether the address lies in a block that a pool keeps: freed in a stream's order, or free. */
bool pool_holds(std::uintptr_t address);

/* Informs the pool that one of its allocations was freed by cuMemFree. */
void forget_pool_allocation(const Allocation &allocation);

} // namespace vgpu
