/* Functions that are called by their address. */
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "../syntax/syntax.h"

namespace vgpu::ptx
{

/* Whether the instruction calls whatever lies at an address. */
bool is_indirect_call(const Instruction &instruction);

/* The functions whose address the module takes anywhere: in a variable (as tables of virtual functions are) or in code.
 * One kernel may store what another one calls. */
std::set<std::string> addressed_functions(const Module &module);

/* What PTX takes for the function's address: its place among the module's functions, so that it is the same in all
 * kernels, which are compiled one by one, and in variables. 0 if there is no such function. */
std::uint64_t function_address(const Module &module, const std::string &name);

/* LLVM's assembly language of `@function_at`, which finds the function of an address among the module's functions that
 * are compiled together. */
std::string function_at(const Module &module, const std::vector<const Function *> &compiled);

} // namespace vgpu::ptx
