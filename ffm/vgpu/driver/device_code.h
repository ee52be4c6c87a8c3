/* Device code as nvcc makes it: PTX, machine code (cubin), and containers of both. The virtual GPU runs none of it, but
 * takes the time of compiling PTX. */
#pragma once

#include <memory>

#include "../include/kernel_image.h"
#include "cuda_api.h"

namespace vgpu
{

/* The kernels that PTX names, without anything to run. */
class CompiledCode
{
  public:
    virtual ~CompiledCode() = default;
    virtual const KernelImage *image() const = 0;
};

/* Compiles the image's PTX for this device.
 *
 * Errors: CUDA_ERROR_NO_BINARY_FOR_GPU for machine code, and where no PTX is for this device or an older one;
 * CUDA_ERROR_INVALID_PTX for PTX of a later device; CUDA_ERROR_INVALID_IMAGE for anything else. */
CUresult compile(const void *image, std::unique_ptr<CompiledCode> &code);

} // namespace vgpu
