/* A short name for a result, by which two runs can be compared. */
#pragma once

#include <cstddef>
#include <cstdint>

/* FNV-1a over `bytes` bytes, going on from `hash` (http://www.isthe.com/chongo/tech/comp/fnv/). */
inline std::uint64_t checksum(const void *data, std::size_t bytes, std::uint64_t hash = 0xcbf29ce484222325u)
{
    const auto *byte = static_cast<const unsigned char *>(data);
    for (std::size_t index = 0; index < bytes; ++index)
        hash = (hash ^ byte[index]) * 0x100000001b3u;
    return hash;
}
