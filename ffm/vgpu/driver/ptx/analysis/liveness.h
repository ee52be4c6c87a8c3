/* Which registers a thread needs again after it waited, and which of them changed since it last did. */
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "../syntax/syntax.h"

namespace vgpu::ptx
{

/* Of a place where a thread waits; names of registers, sorted. */
struct Kept {
    std::vector<std::string> needed;  /* used later, before they are written */
    std::vector<std::string> changed; /* those of them that may have been written since the thread last waited */
};

/* For each place in the function's body where a thread waits: at an instruction that does it itself (`waits`), before
 * one of `exchanges`, or before one of `possible`, where it may wait or not. */
std::map<std::size_t, Kept> kept_registers(const Function &function, const std::set<std::size_t> &exchanges,
                                           const std::set<std::size_t> &possible);

} // namespace vgpu::ptx
