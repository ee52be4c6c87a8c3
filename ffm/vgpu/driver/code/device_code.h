/* Device code as nvcc makes it: PTX, machine code (cubin), and containers of both. PTX runs (`device.code`), and takes
 * the modelled time of compiling. Of machine code, only the contents are known. */
#pragma once

#include <deque>
#include <memory>

#include "../../include/kernel_image.h"
#include "foundation/cuda_api.h"
#include "ptx/code_contents.h"
#include "ptx/program.h"

namespace vgpu
{

/* What loaded device code holds, as an image whose kernels have no host functions. */
class CompiledCode
{
  public:
    CompiledCode(CodeContents contents, std::unique_ptr<ptx::Program> program);
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

    int architecture() const
    {
        return contents_.architecture;
    }

    /* Null where the kernels change nothing. */
    ptx::Program *program() const
    {
        return program_.get();
    }

  private:
    CodeContents contents_;
    std::unique_ptr<ptx::Program> program_;
    std::deque<KernelEntry> entries_;
    KernelImage image_;
};

/* Takes the image's PTX if PTX is to run, even PTX for a newer device if the image has machine code for this one.
 * Otherwise takes machine code for this device if kernels are to pass (`device.code`).
 *
 * Errors, of which the ones of PTX are told on standard error: CUDA_ERROR_JIT_COMPILER_NOT_FOUND where PTX is to run
 * and there is no LLVM; CUDA_ERROR_NO_BINARY_FOR_GPU where neither is for this device (or PTX for an older one);
 * CUDA_ERROR_INVALID_PTX for PTX of a later device; CUDA_ERROR_INVALID_IMAGE for anything else. */
CUresult compile(const void *image, std::unique_ptr<CompiledCode> &code);

/* The PTX of an image: text, or the container's that suits this device best. CUDA_ERROR_NO_BINARY_FOR_GPU where it has
 * none, CUDA_ERROR_INVALID_IMAGE for anything else. */
CUresult portable_code_of(const void *image, std::string &text);

} // namespace vgpu
