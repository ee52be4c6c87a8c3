/* What device code contains, without anything to run: the names of kernels, the layout of their parameters,
 * variables. */
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "../../include/kernel_image.h"

namespace vgpu
{

struct CodeKernel {
    std::string name;
    std::vector<KernelParameter> parameters;
};

struct CodeVariable {
    std::string name;
    std::size_t size; /* bytes */
    bool managed = false;
};

struct CodeContents {
    std::vector<CodeKernel> kernels;
    std::vector<CodeVariable> variables;
    int architecture = 90; /* that it was compiled for: 10 * major + minor */
};

/* Reads machine code (a cubin, which is an ELF file of machine 190) of at most `size` bytes; false if it is not a cubin
 * or does not describe the layout of a kernel's parameters. */
bool read_machine_code(const char *bytes, std::size_t size, CodeContents &contents);

/* Reads PTX; false if a kernel's parameters cannot be understood. */
bool read_portable_code(const std::string &text, CodeContents &contents);

} // namespace vgpu
