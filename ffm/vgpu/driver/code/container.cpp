#include "container.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "compressed_code.h"

namespace vgpu
{

namespace
{

/* The container's layout. NVIDIA does not document it. ffm/driver/device_code.py reads it too. */
constexpr std::uint32_t container_magic = 0xBA55ED50;
struct Container {
    std::uint32_t magic;
    std::uint16_t version, header_size;
    std::uint64_t size; /* of everything after the header */
};
struct BinaryEntry {
    CodeKind kind;
    std::uint16_t version;
    std::uint32_t header_size;
    std::uint64_t size;            /* of the code after the header, with its padding */
    std::uint32_t compressed_size; /* without padding; 0 if it is not compressed */
    std::uint32_t unused[2];
    std::uint32_t architecture; /* 10 * major + minor */
    std::uint32_t unused_name[2];
    std::uint64_t flags;
    std::uint64_t unused_zero;
    std::uint64_t plain_size; /* of the code once it is decompressed */
};
constexpr std::uint64_t compressed_lz4 = 0x2000, compressed_zstandard = 0x8000, architecture_specific = 0x100000;

/* How well the code suits this device; 0 if it cannot run here. Machine code runs on its own architecture and on
 * newer ones of the same generation. PTX can be compiled for its own architecture and for all newer ones. */
std::uint32_t suitability(const BinaryEntry &entry)
{
    bool machine = entry.kind == CodeKind::machine;
    if ((!machine && entry.kind != CodeKind::portable) || entry.architecture > capability)
        return 0;
    if (machine && entry.architecture / 10 != capability / 10)
        return 0;
    return 2 * entry.architecture + ((entry.flags & architecture_specific) ? 1 : 0);
}

/* Rates PTX for newer devices, which can replace machine code: older is better. Code for a single architecture does
 * not count. */
std::uint32_t suitability_of_newer(const BinaryEntry &entry)
{
    if (entry.kind != CodeKind::portable || entry.architecture <= capability || (entry.flags & architecture_specific))
        return 0;
    return std::numeric_limits<std::uint32_t>::max() - entry.architecture;
}

/* The most that one compressed byte can expand to: a byte of LZ4 stands for up to 255 bytes, four bytes of Zstandard
 * for up to a block of 128 KiB. A larger size means that the container is damaged, so no memory is allocated for it. */
constexpr std::uint64_t lz4_growth = 255, zstandard_growth = 32 << 10, largest_code = std::numeric_limits<int>::max();

bool extract(const BinaryEntry &entry, const char *bytes, std::string &plain)
{
    if (!(entry.flags & (compressed_lz4 | compressed_zstandard))) {
        plain.assign(bytes, entry.size);
        return true;
    }
    bool lz4 = entry.flags & compressed_lz4;
    std::uint64_t most = entry.compressed_size * (lz4 ? lz4_growth : zstandard_growth);
    if (entry.compressed_size > entry.size || entry.plain_size > std::min(most, largest_code))
        return false;
    plain.resize(entry.plain_size);
    return decompress(lz4 ? Compression::lz4 : Compression::zstandard, bytes, entry.compressed_size, plain);
}

using Suitability = std::uint32_t (*)(const BinaryEntry &);

/* Finds the code of one kind that suits the device best. */
bool select(const void *image, CodeKind kind, std::string &plain, Suitability suits)
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
        std::size_t left = static_cast<std::size_t>(end - place);
        if (entry.header_size < sizeof entry || entry.header_size > left || entry.size > left - entry.header_size)
            break;
        if (entry.kind == kind && suits(entry) > 0 && (!best_code || suits(entry) > suits(best))) {
            best = entry;
            best_code = place + entry.header_size;
        }
        place += entry.header_size + entry.size;
    }
    return best_code && extract(best, best_code, plain);
}

} // namespace

bool is_container(const void *image)
{
    std::uint32_t magic;
    std::memcpy(&magic, image, sizeof magic);
    return magic == container_magic;
}

bool code_for_device(const void *container, CodeKind kind, std::string &plain)
{
    return select(container, kind, plain, suitability);
}

bool portable_code_for_later(const void *container, std::string &plain)
{
    return select(container, CodeKind::portable, plain, suitability_of_newer);
}

} // namespace vgpu
