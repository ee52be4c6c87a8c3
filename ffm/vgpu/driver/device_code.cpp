#include "device_code.h"

#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "configuration.h"

namespace vgpu
{

namespace
{

constexpr int capability = 90;

/* What nvcc registers: the container lies behind a pointer (fatbinary_section.h). */
constexpr std::uint32_t wrapper_magic = 0x466243b1;
struct Wrapper {
    std::uint32_t magic, version;
    const void *container;
};

/* The container's layout, as ffm/driver/device_code.py reads it too: it is not documented. */
constexpr std::uint32_t container_magic = 0xBA55ED50;
struct Container {
    std::uint32_t magic;
    std::uint16_t version, header_size;
    std::uint64_t size; /* of what follows the header */
};
struct Entry {
    std::uint16_t kind, version;
    std::uint32_t header_size;
    std::uint64_t size; /* of the code, which follows the header */
    std::uint32_t unused[3];
    std::uint32_t architecture; /* 10 * major + minor */
};
constexpr std::uint16_t portable_kind = 1;

class Code : public CompiledCode
{
  public:
    /* Names that follow `.entry` in the text. */
    explicit Code(const std::string &text)
    {
        for (std::size_t place = text.find(".entry"); place != std::string::npos; place = text.find(".entry", place)) {
            place = text.find_first_not_of(" \t\r\n", place + std::strlen(".entry"));
            if (place == std::string::npos)
                break;
            names_.push_back(text.substr(place, text.find_first_of(" \t\r\n(", place) - place));
            entries_.push_back({names_.back().c_str(), nullptr, nullptr, 0, nullptr});
        }
        for (std::size_t index = 1; index < entries_.size(); ++index)
            entries_[index - 1].next = &entries_[index];
        image_ = {KERNEL_IMAGE_MAGIC, KERNEL_IMAGE_VERSION, entries_.empty() ? nullptr : &entries_.front()};
    }

    const KernelImage *image() const override
    {
        return &image_;
    }

  private:
    std::deque<std::string> names_;
    std::deque<KernelEntry> entries_;
    KernelImage image_;
};

/* The PTX of the container that this device's code would be made from: of the latest architecture that is not later. */
bool portable_code(const void *image, std::string &text)
{
    const char *place = static_cast<const char *>(image);
    Container container;
    std::memcpy(&container, place, sizeof container);
    place += container.header_size;
    const char *end = place + container.size;
    std::uint32_t best = 0;
    while (static_cast<std::size_t>(end - place) >= sizeof(Entry)) {
        Entry entry;
        std::memcpy(&entry, place, sizeof entry);
        if (entry.header_size < sizeof entry)
            break;
        if (entry.kind == portable_kind && entry.architecture <= capability && entry.architecture >= best) {
            best = entry.architecture;
            text.assign(place + entry.header_size, entry.size);
        }
        place += entry.header_size + entry.size;
    }
    return best != 0;
}

/* The architecture of `.target sm_90`, 0 where the text is no PTX. */
int target_of(const std::string &text)
{
    std::size_t version = text.find(".version"), target = text.find(".target");
    if (version == std::string::npos || target == std::string::npos)
        return 0;
    std::size_t number = text.find("sm_", target);
    return number == std::string::npos ? 0 : std::atoi(text.c_str() + number + std::strlen("sm_"));
}

} // namespace

CUresult compile(const void *image, std::unique_ptr<CompiledCode> &code)
{
    std::uint32_t magic;
    std::memcpy(&magic, image, sizeof magic);
    if (magic == wrapper_magic) {
        image = static_cast<const Wrapper *>(image)->container;
        std::memcpy(&magic, image, sizeof magic);
    }
    std::string text;
    if (std::memcmp(&magic,
                    "\x7f"
                    "ELF",
                    sizeof magic) == 0)
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    if (magic == container_magic) {
        if (!portable_code(image, text))
            return CUDA_ERROR_NO_BINARY_FOR_GPU;
    } else {
        const char *first = static_cast<const char *>(image);
        first += std::strspn(first, " \t\r\n");
        if (*first != '.' && *first != '/')
            return CUDA_ERROR_INVALID_IMAGE;
        text = first;
        int target = target_of(text);
        if (target == 0 || target > capability)
            return target == 0 ? CUDA_ERROR_INVALID_IMAGE : CUDA_ERROR_INVALID_PTX;
    }
    CallCost cost(microseconds(configuration().call_compile));
    code = std::make_unique<Code>(text);
    return CUDA_SUCCESS;
}

} // namespace vgpu
