/* Which modifiers each instruction may have (PTX ISA, "Instruction Set"). */
#pragma once

#include <string>

#include "syntax.h"

namespace vgpu::ptx
{

/* The part of an instruction that the driver does not know: its opcode, a modifier with its dot, or that there are more
 * operands than any form has. Empty if it knows everything. */
std::string unknown_part(const Instruction &instruction);

} // namespace vgpu::ptx
