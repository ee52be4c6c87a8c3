#include "container.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "compressed_code.h"

namespace vgpu
{

namespace
{

/* The container's layout, which is undocumented; ffm/driver/device_code.py reads it too. */
constexpr std::uint32_t container_magic = 0xBA55ED50;
struct Container {
    std::uint32_t magic;
    std::uint16_t version, header_size;
    std::uint64_t size; /* of what follows the header */
};
struct BinaryEntry {
    CodeKind kind;
    std::uint16_t version;
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
constexpr std::uint64_t compressed_lz4 = 0x2000, compressed_zstandard = 0x8000, architecture_specific = 0x100000;

/* How well the code suits this device; 0 means not at all. Machine code runs on devices of the same generation that are
 * not older. PTX can be compiled for all that are not older. */
std::uint32_t suitability(const BinaryEntry &entry)
{
    bool machine = entry.kind == CodeKind::machine;
    if ((!machine && entry.kind != CodeKind::portable) || entry.architecture > capability)
        return 0;
    if (machine && entry.architecture / 10 != capability / 10)
        return 0;
    return 2 * entry.architecture + ((entry.flags & architecture_specific) ? 1 : 0);
}

/* The same for PTX that stands in for machine code: the older, the better. What only one architecture has is none. */
std::uint32_t suitability_of_newer(const BinaryEntry &entry)
{
    if (entry.kind != CodeKind::portable || entry.architecture <= capability || (entry.flags & architecture_specific))
        return 0;
    return std::numeric_limits<std::uint32_t>::max() - entry.architecture;
}

/* No code of either format grows more than this when it is decompressed: LZ4 writes 255 bytes for one, Zstandard a
 * block of 128 KiB for four. A size beyond it is damage, for which no memory is made. */
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

/* The container's code of one kind that suits best. */
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
