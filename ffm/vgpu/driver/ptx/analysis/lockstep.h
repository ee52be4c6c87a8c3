/* Code from before Volta exchanges values within a warp through shared memory and does not synchronize: it relies on
 * lanes that execute each instruction together. GPUs still do that where lanes do not diverge. */
#pragma once

#include <cstddef>
#include <set>

#include "../syntax/syntax.h"

namespace vgpu::ptx
{

/* The instructions, by their places in the body, before which the lanes of a warp have to come together: a load from
 * shared memory at which another lane may have stored since they last were together, and in functions with such a load
 * also a store where another lane may have loaded or stored; and the labels at which lanes that do not take part wait
 * for the others. A lane that accesses only what it stored itself waits for nobody. Where lanes exchange values, a
 * fence is one as well: a lane that gives back a lock behind it does so when all have stored what the lock protects. */
std::set<std::size_t> exchanges(const Function &function);

} // namespace vgpu::ptx
