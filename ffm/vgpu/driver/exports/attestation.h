/* The answer with which NVIDIA's runtime, from CUDA 11 on, checks that it talks to a real driver. */
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace vgpu
{

using Digest = std::array<unsigned char, 16>;

/* MD2 (RFC 1319) of `size` bytes, keyed as in HMAC (RFC 2104) with a key of one block of 16 bytes. */
Digest keyed_digest(const Digest &key, const void *bytes, std::size_t size);

/* What the runtime passes, in the order in which it is digested; the devices follow. */
struct AttestedCall {
    std::uint32_t driver_version;
    std::uint32_t runtime_version;
    std::uint32_t process;
    std::uint32_t thread; /* the lower half of pthread_self() */
    const void *runtime_table;
    const void *attestation_table;
    const void *function; /* the attestation function itself, in its table */
    std::uint64_t unix_seconds;
};

/* Stores the 16 bytes that the runtime expects from the driver. */
void attest(const AttestedCall &call, unsigned char *answer);

} // namespace vgpu
