/* The driver's own pinned buffers, through which copies from and to pageable memory go. */
#pragma once

#include <memory>

#include "contexts/operation.h"

namespace vgpu
{

using StagingBuffer = std::shared_ptr<char>;

/* The size of the largest staging buffer, in bytes. */
std::size_t staging_chunk();

/* Returns a buffer of `bytes` bytes. Waits for the GPU if all buffers are in use. The caller must not hold the
 * scheduler's mutex. */
StagingBuffer staging_buffer(std::size_t bytes);

/* Notes that `operation` uses a buffer, so that a later staging_buffer can wait for it. */
void staging_buffer_used_by(const OperationReference &operation);

} // namespace vgpu
