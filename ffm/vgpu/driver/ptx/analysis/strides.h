/* Loops in which a thread's accesses lie far apart, but close to those of its neighbours: a GPU combines those of a
 * warp into one. */
#pragma once

#include <cstddef>
#include <set>

#include "../syntax/syntax.h"

namespace vgpu::ptx
{

/* The branches, by their places in the body, that close such a loop: it does not count by a small constant, it accesses
 * memory, and no thread waits for another in it. If threads ran it one after the other, each would fetch all the cache
 * lines that its neighbours need, too. */
std::set<std::size_t> strided_loops(const Function &function);

/* Whether the instruction makes its thread wait for others of the block. */
bool waits(const Instruction &instruction);

/* The names of all labels that an instruction may go to. */
std::vector<std::string> targets(const Function &function, const Instruction &instruction);

} // namespace vgpu::ptx
