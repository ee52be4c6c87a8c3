/* Loaded images: modules, libraries, and the kernels in them. */
#pragma once

#include <map>
#include <memory>
#include <string>

#include "../include/kernel_image.h"
#include "cuda_api.h"
#include "device_code.h"
#include "operation.h"

namespace vgpu
{

struct Module;

/* A kernel of a loaded image; what CUfunction and CUkernel point at. */
struct Kernel {
    Module *module;
    const KernelEntry *entry;
    RunTimeEstimate run_time;
    std::map<int, int> attributes; /* those that were set */
};

/* A variable of device code, zero at first whatever the code says. */
struct Variable {
    CUdeviceptr address;
    std::size_t size;
};

/* A loaded image; what CUmodule and CUlibrary point at. */
struct Module {
    const KernelImage *image;
    std::unique_ptr<CompiledCode> compiled;                 /* owns the image of device code */
    std::map<std::string, std::unique_ptr<Kernel>> kernels; /* those that were asked for */
    std::map<std::string, Variable> variables;              /* likewise */
};

/* The kernel behind the handle; null when it is none. */
Kernel *find_kernel(const void *handle);

/* The variable of the image behind the handle, made when it is first asked for. CUDA_ERROR_INVALID_HANDLE where the
 * handle is none, else the errors of variable_of. */
CUresult find_variable(const void *handle, const char *name, Variable &found);

/* As find_variable, for a caller that guards the image. CUDA_ERROR_NOT_FOUND, CUDA_ERROR_OUT_OF_MEMORY. */
CUresult variable_of(Module &module, const char *name, Variable &found);

/* Gives the memory of all variables back. None may be in use. */
void release_variables(Module &module);

} // namespace vgpu
