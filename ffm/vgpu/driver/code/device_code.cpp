#include "device_code.h"

#include <cstdlib>
#include <cstring>
#include <elf.h>
#include <limits>
#include <string>

#include "compressed_code.h"
#include "foundation/configuration.h"
#include "ptx/machine/compiler.h"

namespace vgpu
{

namespace
{

constexpr int capability = 90;

/* The container's layout, which is undocumented; ffm/driver/device_code.py reads it too. */
constexpr std::uint32_t container_magic = 0xBA55ED50;
struct Container {
    std::uint32_t magic;
    std::uint16_t version, header_size;
    std::uint64_t size; /* of what follows the header */
};
struct BinaryEntry {
    std::uint16_t kind, version;
    std::uint32_t header_size;
    std::uint64_t size;            /* of the code, which follows the header, including its padding */
    std::uint32_t compressed_size; /* without padding; 0 if it is not compressed */
    std::uint32_t unused[2];
    std::uint32_t architecture; /* 10 * major + minor */
    std::uint32_t unused_name[2];
    std::uint64_t flags;
    std::uint64_t unused_zero;
    std::uint64_t plain_size; /* of compressed code */
};
constexpr std::uint16_t portable_kind = 1, machine_kind = 2;
constexpr std::uint64_t compressed_lz4 = 0x2000, compressed_zstandard = 0x8000, architecture_specific = 0x100000;

/* How well the code suits this device; 0 means not at all. Machine code runs on devices of the same generation that are
 * not older. PTX can be compiled for all that are not older. */
std::uint32_t suitability(const BinaryEntry &entry)
{
    bool machine = entry.kind == machine_kind;
    if ((!machine && entry.kind != portable_kind) || entry.architecture > capability)
        return 0;
    if (machine && entry.architecture / 10 != capability / 10)
        return 0;
    return 2 * entry.architecture + ((entry.flags & architecture_specific) ? 1 : 0);
}

/* The same for PTX that stands in for machine code: the older, the better. What only one architecture has is none. */
std::uint32_t suitability_of_newer(const BinaryEntry &entry)
{
    if (entry.kind != portable_kind || entry.architecture <= capability || (entry.flags & architecture_specific))
        return 0;
    return std::numeric_limits<std::uint32_t>::max() - entry.architecture;
}

bool extract(const BinaryEntry &entry, const char *bytes, std::string &plain)
{
    if (!(entry.flags & (compressed_lz4 | compressed_zstandard))) {
        plain.assign(bytes, entry.size);
        return true;
    }
    plain.resize(entry.plain_size);
    Compression compression = entry.flags & compressed_lz4 ? Compression::lz4 : Compression::zstandard;
    return entry.compressed_size <= entry.size && decompress(compression, bytes, entry.compressed_size, plain);
}

using Suitability = std::uint32_t (*)(const BinaryEntry &);

/* The container's code of one kind that suits best. */
bool select(const void *image, std::uint16_t kind, std::string &plain, Suitability suits = suitability)
{
    const char *place = static_cast<const char *>(image);
    Container container;
    std::memcpy(&container, place, sizeof container);
    place += container.header_size;
    const char *end = place + container.size, *best_code = nullptr;
    BinaryEntry best = {};
    while (static_cast<std::size_t>(end - place) >= sizeof(BinaryEntry)) {
        BinaryEntry entry;
        std::memcpy(&entry, place, sizeof entry);
        if (entry.header_size < sizeof entry)
            break;
        if (entry.kind == kind && suits(entry) > 0 && (!best_code || suits(entry) > suits(best))) {
            best = entry;
            best_code = place + entry.header_size;
        }
        place += entry.header_size + entry.size;
    }
    return best_code && extract(best, best_code, plain);
}

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

/* A cubin passed by itself ends where the last of its tables ends. */
std::size_t size_of(const void *image)
{
    Elf64_Ehdr header;
    std::memcpy(&header, image, sizeof header);
    std::size_t sections = header.e_shoff + std::size_t{header.e_shnum} * header.e_shentsize;
    std::size_t segments = header.e_phoff + std::size_t{header.e_phnum} * header.e_phentsize;
    return std::max(sections, segments);
}

/* What was found in an image. */
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
        "vgpu: an image without PTX for this device does not run here: have the compiler embed PTX, as nvcc does "
        "with -arch=sm_90 and CuPy with CUPY_COMPILE_WITH_PTX=1, or let such kernels pass without doing anything "
        "(device.code = run or pass)\n",
        stderr);
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
}

CUresult take_container(const void *image, Found &found)
{
    std::string plain;
    if (runs_portable_code(configuration()) && select(image, portable_kind, plain))
        return take_portable_code(plain, found);
    bool has_machine_code = select(image, machine_kind, plain);
    /* A GPU would run the machine code. PTX of the same source computes the same, whichever device it is for. */
    if (runs_portable_code(configuration()) && has_machine_code &&
        select(image, portable_kind, plain, suitability_of_newer))
        return take_portable_code(plain, found);
    if (passes_other_code(configuration()) && has_machine_code)
        return take_machine_code(plain.data(), plain.size(), found);
    return select(image, portable_kind, plain) ? take_portable_code(plain, found) : refuse_machine_code();
}

CUresult take_text(const char *text, Found &found)
{
    text += std::strspn(text, " \t\r\n");
    if (*text != '.' && *text != '/')
        return CUDA_ERROR_INVALID_IMAGE;
    int target = target_of(text);
    if (target == 0 || target > capability)
        return target == 0 ? CUDA_ERROR_INVALID_IMAGE : CUDA_ERROR_INVALID_PTX;
    return take_portable_code(text, found);
}

CUresult read_code(const void *image, Found &found)
{
    std::uint32_t magic;
    std::memcpy(&magic, image, sizeof magic);
    if (magic == container_magic)
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
    std::uint32_t magic;
    std::memcpy(&magic, image, sizeof magic);
    if (magic == container_magic) {
        if (!select(image, portable_kind, text))
            return CUDA_ERROR_NO_BINARY_FOR_GPU;
        text.resize(std::strlen(text.c_str())); /* a container fills up with zeros */
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
    image_ = {KERNEL_IMAGE_MAGIC, KERNEL_IMAGE_VERSION, entries_.empty() ? nullptr : &entries_.front()};
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
