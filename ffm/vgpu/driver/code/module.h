/* Loaded images: modules, libraries, and the kernels in them. */
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "../../include/kernel_image.h"
#include "contexts/operation.h"
#include "device_code.h"
#include "foundation/cuda_api.h"

namespace vgpu
{

struct Module;

/* A kernel of a loaded image; what CUfunction and CUkernel point at. */
struct Kernel {
    Module *module;
    const KernelEntry *entry;
    RunTimeEstimate run_time;
    std::map<int, int> attributes; /* those that were set */
    std::once_flag loaded;         /* by its first launch, if kernels are loaded lazily */
};

/* A variable of device code; zero at first, or what the code says where that runs. */
struct Variable {
    CUdeviceptr address;
    std::size_t size;
};

/* Of managed variables, which all devices share. */
constexpr CUdevice every_device = -1;

/* Whose it is, and its name. */
using VariableKey = std::pair<CUdevice, std::string>;

/* A loaded image; what CUmodule and CUlibrary point at. */
struct Module {
    const KernelImage *image;
    std::unique_ptr<CompiledCode> compiled;                 /* owns the image of device code */
    std::map<std::string, std::unique_ptr<Kernel>> kernels; /* those that were requested */
    std::map<VariableKey, Variable> variables;              /* the same; each device has its own */
    std::map<CUdevice, std::vector<std::uint64_t>> places;  /* of all variables, for code that runs */
};

/* What is known of the kernel without compiling it. If its code passes, that of no kernel in particular. */
ptx::KernelProperties properties_of(const Kernel &kernel);

/* The kernel behind the handle; null if there is none. */
Kernel *find_kernel(const void *handle);

/* The device's variable of the image behind the handle, created on the first request. CUDA_ERROR_INVALID_HANDLE if
 * the handle is invalid, otherwise the errors of variable_of. */
CUresult find_variable(const void *handle, CUdevice device, const char *name, Variable &found);

/* Like find_variable, for a caller that guards the image. CUDA_ERROR_NOT_FOUND, CUDA_ERROR_OUT_OF_MEMORY. */
CUresult variable_of(Module &module, CUdevice device, const char *name, Variable &found);

/* What runs for a kernel of device code, null if it changes nothing; compiled on the first request.
 * CUDA_ERROR_NOT_SUPPORTED, with a message on standard error, if it cannot be. */
CUresult find_code(Kernel &kernel, const ptx::Code *&code);

/* The addresses of all of the image's variables on the device, for code that runs; they have their first values then.
 * CUDA_ERROR_OUT_OF_MEMORY; CUDA_ERROR_NOT_SUPPORTED, with a message, for values that are not implemented. */
CUresult find_variables(Module &module, CUdevice device, const std::uint64_t *&addresses);

/* Like find_variables, for a caller that guards the image. */
CUresult place_variables(Module &module, CUdevice device);

/* Frees the memory of all variables. None may be in use. */
void release_variables(Module &module);

} // namespace vgpu
