/* Images of device code on random bytes: containers, cubins and PTX. Built with libFuzzer, AddressSanitizer and
 * UndefinedBehaviorSanitizer by tests/native/fuzzing.py. */
#include <cstdint>
#include <cstring>
#include <memory>

#include "code/container.h"
#include "ptx/code_contents.h"
#include "ptx/syntax/syntax.h"

namespace
{

/* A container of exactly these entries, so that a read beyond them is seen. */
void read_container(const char *entries, std::size_t size)
{
    constexpr std::size_t header_size = 16;
    auto image = std::make_unique<char[]>(header_size + size);
    const std::uint32_t magic = 0xBA55ED50;
    const std::uint16_t numbers[2] = {1, header_size};
    const std::uint64_t following = size;
    std::memcpy(image.get(), &magic, sizeof magic);
    std::memcpy(image.get() + 4, numbers, sizeof numbers);
    std::memcpy(image.get() + 8, &following, sizeof following);
    if (size > 0)
        std::memcpy(image.get() + header_size, entries, size);
    std::string plain;
    vgpu::code_for_device(image.get(), vgpu::CodeKind::portable, plain);
    vgpu::code_for_device(image.get(), vgpu::CodeKind::machine, plain);
    vgpu::portable_code_for_later(image.get(), plain);
}

void read_text(const std::string &text)
{
    vgpu::CodeContents contents;
    vgpu::read_portable_code(text, contents);
    try {
        vgpu::ptx::parse(text);
    } catch (const vgpu::ptx::Error &) {
    }
}

} // namespace

/* The first byte says what the others are. */
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
    if (size == 0)
        return 0;
    const char *content = reinterpret_cast<const char *>(data) + 1;
    vgpu::CodeContents contents;
    if (data[0] == 'c')
        read_container(content, size - 1);
    else if (data[0] == 'm')
        vgpu::read_machine_code(content, size - 1, contents);
    else if (data[0] == 't')
        read_text(std::string(content, size - 1));
    return 0;
}
