/* Code from before Volta exchanges values within a warp through shared memory and does not synchronize: it relies on
 * lanes that execute each instruction together. GPUs still do that where lanes do not diverge. */
#pragma once

#include <cstddef>
#include <set>

#include "../syntax/syntax.h"

namespace vgpu::ptx
{

/* The instructions, by their places in the body, before which the lanes of a warp must come together, and the labels at
 * which lanes that do not take part wait for the others. Such an instruction is a load from shared memory where another
 * lane may have stored since they last were together. In functions with such a load, it is also a store where another
 * lane may have loaded or stored. A lane that accesses only what it stored itself waits for nobody. Where lanes
 * exchange values, a fence is one as well: a lane that releases a lock behind it must do so after all have stored what
 * the lock protects. */
std::set<std::size_t> exchanges(const Function &function);

} // namespace vgpu::ptx
