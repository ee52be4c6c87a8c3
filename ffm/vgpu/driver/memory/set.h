/* Filling memory with a value. */
#pragma once

#include "contexts/context.h"
#include "memory.h"

namespace vgpu
{

/* CUDA_ERROR_INVALID_VALUE if the rows exceed an allocation; gives a single row its pitch. */
CUresult check_set(CUDA_MEMSET_NODE_PARAMS &set);

/* The set as one piece of work for the GPU. */
OperationReference set_operation(Context *context, const CUDA_MEMSET_NODE_PARAMS &set);

} // namespace vgpu
