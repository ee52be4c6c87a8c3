/* Device code as nvcc makes it: PTX, machine code (cubin), and containers of both. The virtual GPU runs none of it, but
 * takes the time of compiling PTX, and knows what the code holds. */
#pragma once

#include <deque>
#include <memory>

#include "../include/kernel_image.h"
#include "code_contents.h"
#include "cuda_api.h"

namespace vgpu
{

/* What loaded device code holds, as an image whose kernels have nothing to run. */
class CompiledCode
{
  public:
    explicit CompiledCode(CodeContents contents);
    CompiledCode(const CompiledCode &) = delete;
    CompiledCode &operator=(const CompiledCode &) = delete;

    const KernelImage *image() const
    {
        return &image_;
    }

    const std::vector<CodeVariable> &variables() const
    {
        return contents_.variables;
    }

  private:
    CodeContents contents_;
    std::deque<KernelEntry> entries_;
    KernelImage image_;
};

/* Takes machine code for this device where the configuration lets kernels pass that have nothing to run (`device.code`)
 * and the image has some, else compiles the image's PTX.
 *
 * Errors: CUDA_ERROR_NO_BINARY_FOR_GPU where neither is for this device (or PTX for an older one);
 * CUDA_ERROR_INVALID_PTX for PTX of a later device; CUDA_ERROR_INVALID_IMAGE for anything else. */
CUresult compile(const void *image, std::unique_ptr<CompiledCode> &code);

} // namespace vgpu
