/* Loops of which each thread's accesses lie far apart, while those of its neighbours are close: a GPU makes one access
 * of a warp's. */
#pragma once

#include <cstddef>
#include <set>

#include "../syntax/syntax.h"

namespace vgpu::ptx
{

/* The branches, by their places in the body, that close such a loop: what it counts by is no small constant, it
 * accesses memory, and no thread waits for another in it. Threads that ran it one after the other would each fetch all
 * the lines of the cache that their neighbours need too. */
std::set<std::size_t> strided_loops(const Function &function);

/* Whether the instruction makes its thread wait for others of the block. */
bool waits(const Instruction &instruction);

/* The names of all labels that an instruction may go to. */
std::vector<std::string> targets(const Function &function, const Instruction &instruction);

} // namespace vgpu::ptx
