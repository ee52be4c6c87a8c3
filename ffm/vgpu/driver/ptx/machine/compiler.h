/* Compiles translated code into machine code, with the LLVM that llvmlite brings. */
#pragma once

#include <string>

namespace vgpu::ptx
{

/* An object file (ELF) of LLVM's assembly language, for this processor. Throws Error where no LLVM can be found, or it
 * refuses the text. */
std::string compile(const std::string &assembly);

/* Why there is no LLVM, as far as can be told without loading it; empty if there is a file. */
std::string missing_compiler();

} // namespace vgpu::ptx
