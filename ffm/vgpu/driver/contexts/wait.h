/* The one place where the driver waits for the GPU. */
#pragma once

#include <vector>

#include "operation.h"

namespace vgpu
{

/* Returns when all operations (null ones are skipped) are done. The caller must not hold the scheduler's mutex.
 *
 * Every wait of the driver, explicit, implicit or private, ends here: this is what a tool looks for as "the internal
 * wait function". It is entered even if there is nothing to wait for. */
__attribute__((noinline, noclone)) void wait_for_gpu(const std::vector<OperationReference> &operations);

} // namespace vgpu
