#include "device_code.h"

#include <cstdlib>
#include <cstring>
#include <elf.h>
#include <string>

#include "container.h"
#include "foundation/configuration.h"
#include "ptx/machine/compiler.h"

namespace vgpu
{

namespace
{

/* The architecture of `.target sm_90`; 0 if the text is not PTX. */
int target_of(const std::string &text)
{
    std::size_t version = text.find(".version"), target = text.find(".target");
    if (version == std::string::npos || target == std::string::npos)
        return 0;
    std::size_t number = text.find("sm_", target);
    return number == std::string::npos ? 0 : std::atoi(text.c_str() + number + std::strlen("sm_"));
}

bool is_machine_code(const void *image)
{
    return std::memcmp(image, ELFMAG, SELFMAG) == 0;
}

/* A cubin that is passed without a container has no size of its own. It ends with the last of its tables. */
std::size_t size_of(const void *image)
{
    Elf64_Ehdr header;
    std::memcpy(&header, image, sizeof header);
    std::size_t sections = header.e_shoff + std::size_t{header.e_shnum} * header.e_shentsize;
    std::size_t segments = header.e_phoff + std::size_t{header.e_phnum} * header.e_phentsize;
    return std::max(sections, segments);
}

/* The content of an image. */
struct Found {
    CodeContents contents;
    std::unique_ptr<ptx::Program> program;
};

CUresult take_machine_code(const char *bytes, std::size_t size, Found &found)
{
    return read_machine_code(bytes, size, found.contents) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
}

CUresult take_portable_code(const std::string &text, Found &found)
{
    CallCost cost(microseconds(configuration().call_compile));
    if (!runs_portable_code(configuration()))
        return read_portable_code(text, found.contents) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_PTX;
    std::string missing = ptx::missing_compiler();
    if (!missing.empty()) {
        std::fprintf(stderr, "vgpu: %s\n", missing.c_str());
        return CUDA_ERROR_JIT_COMPILER_NOT_FOUND;
    }
    try {
        found.program = std::make_unique<ptx::Program>(text);
    } catch (const ptx::Error &error) {
        std::fprintf(stderr, "vgpu: PTX that cannot be read: %s\n", error.what());
        return CUDA_ERROR_INVALID_PTX;
    }
    found.program->describe(found.contents);
    found.contents.architecture = target_of(text);
    return CUDA_SUCCESS;
}

CUresult refuse_machine_code()
{
    std::fputs(
        "vgpu: an image without PTX for this device does not run here. Have the compiler embed PTX, as nvcc does with "
        "-arch=sm_90 and CuPy with CUPY_COMPILE_WITH_PTX=1. Or let such kernels pass without doing anything: write "
        "`device.code = run or pass` to the file that VGPU_CONFIGURATION names, or `device.code = pass` for PyCUDA and "
        "Warp, which make machine code alone.\n",
        stderr);
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
}

CUresult take_container(const void *image, Found &found)
{
    std::string plain;
    if (runs_portable_code(configuration()) && code_for_device(image, CodeKind::portable, plain))
        return take_portable_code(plain, found);
    bool has_machine_code = code_for_device(image, CodeKind::machine, plain);
    /* A real GPU would run the machine code. PTX of the same source computes the same results, even if it was made
     * for a newer device. */
    if (runs_portable_code(configuration()) && has_machine_code && portable_code_for_later(image, plain))
        return take_portable_code(plain, found);
    if (passes_other_code(configuration()) && has_machine_code)
        return take_machine_code(plain.data(), plain.size(), found);
    return code_for_device(image, CodeKind::portable, plain) ? take_portable_code(plain, found) : refuse_machine_code();
}

CUresult take_text(const char *text, Found &found)
{
    text += std::strspn(text, " \t\r\n");
    if (*text != '.' && *text != '/')
        return CUDA_ERROR_INVALID_IMAGE;
    int target = target_of(text);
    if (target == 0 || static_cast<std::uint32_t>(target) > capability)
        return target == 0 ? CUDA_ERROR_INVALID_IMAGE : CUDA_ERROR_INVALID_PTX;
    return take_portable_code(text, found);
}

CUresult read_code(const void *image, Found &found)
{
    if (is_container(image))
        return take_container(image, found);
    if (!is_machine_code(image))
        return take_text(static_cast<const char *>(image), found);
    if (!passes_other_code(configuration()))
        return refuse_machine_code();
    return take_machine_code(static_cast<const char *>(image), size_of(image), found);
}

} // namespace

CUresult portable_code_of(const void *image, std::string &text)
{
    if (is_container(image)) {
        if (!code_for_device(image, CodeKind::portable, text))
            return CUDA_ERROR_NO_BINARY_FOR_GPU;
        text.resize(std::strlen(text.c_str())); /* the container pads the text with zeros */
        return CUDA_SUCCESS;
    }
    if (is_machine_code(image))
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    text = static_cast<const char *>(image);
    return target_of(text) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
}

CompiledCode::CompiledCode(CodeContents contents, std::unique_ptr<ptx::Program> program)
    : contents_(std::move(contents)), program_(std::move(program))
{
    for (const CodeKernel &kernel : contents_.kernels)
        entries_.push_back({kernel.name.c_str(), nullptr, kernel.parameters.data(),
                            static_cast<std::uint32_t>(kernel.parameters.size()), nullptr});
    for (std::size_t index = 1; index < entries_.size(); ++index)
        entries_[index - 1].next = &entries_[index];
    image_ = {KERNEL_IMAGE_HEADER, KERNEL_IMAGE_MAGIC, KERNEL_IMAGE_VERSION,
              entries_.empty() ? nullptr : &entries_.front()};
}

CUresult compile(const void *image, std::unique_ptr<CompiledCode> &code)
{
    Found found;
    CUresult result = read_code(image, found);
    if (result == CUDA_SUCCESS)
        code = std::make_unique<CompiledCode>(std::move(found.contents), std::move(found.program));
    return result;
}

} // namespace vgpu
