/* Registers that hold an address in a local variable which is known before the kernel runs. */
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "../syntax/syntax.h"

namespace vgpu::ptx
{

struct LocalPlace {
    const Variable *variable;
    std::int64_t offset; /* bytes */
};

/* By the register's name: those that are written once, with the variable's address and a number added to it. Compilers
 * address every array of a thread by such registers. */
std::map<std::string, LocalPlace> local_places(const Function &function);

} // namespace vgpu::ptx
