/* Copies by direction, as cudaMemcpy and cudaMemcpyAsync make them. */
#pragma once

#include "runtime_api.h"

namespace cudart
{

cudaError_t copy(const DriverTable &driver, void *destination, const void *source, std::size_t bytes,
                 cudaMemcpyKind kind);
cudaError_t copy_async(const DriverTable &driver, void *destination, const void *source, std::size_t bytes,
                       cudaMemcpyKind kind, cudaStream_t handle);

} // namespace cudart
