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

/* A loaded image; what CUmodule and CUlibrary point at. */
struct Module {
    const KernelImage *image;
    std::unique_ptr<CompiledCode> compiled;                 /* owns the image of device code */
    std::map<std::string, std::unique_ptr<Kernel>> kernels; /* those that were asked for */
};

/* The kernel behind the handle; null when it is none. */
Kernel *find_kernel(const void *handle);

} // namespace vgpu
