#include "attestation.h"

#include <cstring>
#include <vector>

#include "foundation/cuda_api.h"

DRIVER_IMPLEMENTATION(cuDeviceGetAttribute);
DRIVER_IMPLEMENTATION(cuDeviceGetCount);
DRIVER_IMPLEMENTATION(cuDeviceGetUuid_v2);

namespace vgpu
{

namespace
{

/* The table of 256 bytes derived from the digits of pi (RFC 1319, section 3.2). */
constexpr unsigned char substitution[256] = {
    41,  46,  67,  201, 162, 216, 124, 1,   61,  54,  84,  161, 236, 240, 6,   19,  98,  167, 5,   243, 192, 199,
    115, 140, 152, 147, 43,  217, 188, 76,  130, 202, 30,  155, 87,  60,  253, 212, 224, 22,  103, 66,  111, 24,
    138, 23,  229, 18,  190, 78,  196, 214, 218, 158, 222, 73,  160, 251, 245, 142, 187, 47,  238, 122, 169, 104,
    121, 145, 21,  178, 7,   63,  148, 194, 16,  137, 11,  34,  95,  33,  128, 127, 93,  154, 90,  144, 50,  39,
    53,  62,  204, 231, 191, 247, 151, 3,   255, 25,  48,  179, 72,  165, 181, 209, 215, 94,  146, 42,  172, 86,
    170, 198, 79,  184, 56,  210, 150, 164, 125, 182, 118, 252, 107, 226, 156, 116, 4,   241, 69,  157, 112, 89,
    100, 113, 135, 32,  134, 91,  207, 101, 230, 45,  168, 2,   27,  96,  37,  173, 174, 176, 185, 246, 28,  70,
    97,  105, 52,  64,  126, 15,  85,  71,  163, 35,  221, 81,  175, 58,  195, 92,  249, 206, 186, 197, 234, 38,
    44,  83,  13,  110, 133, 40,  132, 9,   211, 223, 205, 244, 65,  129, 77,  82,  106, 220, 55,  200, 108, 193,
    171, 250, 36,  225, 123, 8,   12,  189, 177, 74,  120, 136, 149, 139, 227, 99,  232, 109, 233, 203, 213, 254,
    59,  0,   29,  57,  242, 239, 183, 14,  102, 88,  208, 228, 166, 119, 114, 248, 235, 117, 75,  10,  49,  68,
    80,  180, 143, 237, 31,  26,  219, 153, 141, 51,  159, 17,  131, 20,
};

using Bytes = std::vector<unsigned char>;

/* RFC 1319, section 3: the message gets padding and a checksum, and each block goes through 18 rounds. */
Digest digest(Bytes message)
{
    constexpr std::size_t block = 16;
    message.resize(message.size() / block * block + block, static_cast<unsigned char>(block - message.size() % block));

    unsigned char checksum[block] = {};
    unsigned char last = 0;
    for (std::size_t index = 0; index < message.size(); ++index)
        last = checksum[index % block] ^= substitution[message[index] ^ last];
    message.insert(message.end(), checksum, checksum + block);

    unsigned char state[3 * block] = {};
    for (std::size_t start = 0; start < message.size(); start += block) {
        for (std::size_t index = 0; index < block; ++index) {
            state[block + index] = message[start + index];
            state[2 * block + index] = state[index] ^ message[start + index];
        }
        unsigned char mixed = 0;
        for (unsigned char round = 0; round < 18; ++round) {
            for (unsigned char &byte : state)
                mixed = byte ^= substitution[mixed];
            mixed = static_cast<unsigned char>(mixed + round);
        }
    }
    Digest result;
    std::memcpy(result.data(), state, result.size());
    return result;
}

Bytes masked(const Digest &key, unsigned char mask)
{
    Bytes result(key.begin(), key.end());
    for (unsigned char &byte : result)
        byte ^= mask;
    return result;
}

/* The device's properties, in the form that the digest covers. */
struct AttestedDevice {
    CUuuid id;
    int domain, bus, device;
};

int attribute(CUdevice device, CUdevice_attribute which)
{
    int value = 0;
    implementation_cuDeviceGetAttribute(&value, which, device);
    return value;
}

template <typename Value> void append(Bytes &message, const Value &value)
{
    const unsigned char *bytes = reinterpret_cast<const unsigned char *>(&value);
    message.insert(message.end(), bytes, bytes + sizeof value);
}

} // namespace

Digest keyed_digest(const Digest &key, const void *bytes, std::size_t size)
{
    Bytes inner = masked(key, 0x36), outer = masked(key, 0x5c);
    const unsigned char *message = static_cast<const unsigned char *>(bytes);
    inner.insert(inner.end(), message, message + size);
    const Digest once = digest(std::move(inner));
    outer.insert(outer.end(), once.begin(), once.end());
    return digest(std::move(outer));
}

/* The key, the order of the parts, and the two versions answered without a digest are from ZLUDA,
 * dark_api/src/lib.rs (github.com/vosen/ZLUDA). */
void attest(const AttestedCall &call, unsigned char *answer)
{
    constexpr Digest key = {0x14, 0x6a, 0xdd, 0xae, 0x53, 0xa9, 0xa7, 0x52,
                            0xaa, 0x08, 0x41, 0x36, 0x0b, 0xf5, 0x5a, 0x9f};
    constexpr std::uint64_t fixed[2][2] = {{0x3341181c03cb675c, 0x8ed383aa1f4cd1e8},
                                           {0x1841181c03cb675c, 0x8ed383aa1f4cd1e8}};
    const std::uint32_t form = call.runtime_version % 10;
    if (form < 2) {
        std::memcpy(answer, fixed[form], sizeof fixed[form]);
        return;
    }
    Bytes message;
    append(message, call);
    int devices = 0;
    implementation_cuDeviceGetCount(&devices);
    for (CUdevice device = 0; device < devices; ++device) {
        AttestedDevice attested = {};
        implementation_cuDeviceGetUuid_v2(&attested.id, device);
        attested.domain = attribute(device, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID);
        attested.bus = attribute(device, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID);
        attested.device = attribute(device, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID);
        append(message, attested);
    }
    const Digest result = keyed_digest(key, message.data(), message.size());
    std::memcpy(answer, result.data(), result.size());
}

} // namespace vgpu
