/* What all threads of the GPU have in common. */
#pragma once

#include <functional>

#include "operation.h"

namespace vgpu
{

/* Called, with the scheduler's mutex held, when an operation is over. */
using Over = std::function<void(const OperationReference &)>;

/* Starts a thread that runs `work`, which never returns, under this name. Returns false if there can be no more
 * threads. */
bool start_gpu_thread(const char *name, std::function<void()> work);

/* Does the operation's work, if it has any, and learns how long that took. */
void do_work(Operation &operation);

/* When the operation ends: as modelled, or later if its work took longer. */
Nanoseconds end_of(const Operation &operation);

} // namespace vgpu
