#include "containers.h"

#include <lz4.h>
#include <string.h>
#include <sys/mman.h>

#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>

#include "new_pages.h"

static const uint32_t wrapper_magic = 0x466243b1, container_magic = 0xba55ed50;

enum { ONE_CONTAINER = 1, MACHINE_CODE = 2, LZ4 = 0x2000, ZSTANDARD = 0x8000, LARGEST = 1 << 30 };

typedef struct {
    uint32_t magic, version;
    uint64_t container;
} wrapper;

typedef struct {
    uint32_t magic;
    uint16_t version, header_bytes;
    uint64_t bytes; /* of what follows the header */
} header;

typedef struct {
    uint16_t kind, version;
    uint32_t header_bytes;
    uint64_t bytes;        /* of the code, which follows the header, with its padding */
    uint32_t packed_bytes; /* without the padding; 0 if it is not compressed */
    uint32_t unused[2];
    uint32_t architecture;
    uint32_t unused_name[2];
    uint64_t flags;
    uint64_t unused_zero;
    uint64_t plain_bytes;
} entry;

_Static_assert(sizeof(entry) == 64 && sizeof(header) == 16 && sizeof(wrapper) == 16, "as nvcc lays them out");

uint64_t ffm_container_within(const uint8_t *begin, uint64_t address)
{
    wrapper around;
    memcpy(&around, begin, sizeof around);
    return around.magic == wrapper_magic && around.version == ONE_CONTAINER ? around.container : address;
}

size_t ffm_container_bytes(const uint8_t *begin)
{
    header first;
    memcpy(&first, begin, sizeof first);
    const bool known = first.magic == container_magic && first.header_bytes >= sizeof first && first.bytes <= LARGEST;
    return known ? first.header_bytes + first.bytes : 0;
}

bool ffm_container_next(const uint8_t *container, size_t bytes, size_t *place, ffm_contained_code *found)
{
    header first;
    entry one;
    if (*place == 0) {
        if (bytes < sizeof first)
            return false;
        memcpy(&first, container, sizeof first);
        *place = first.header_bytes;
    }
    while (*place <= bytes && bytes - *place >= sizeof one) {
        memcpy(&one, container + *place, sizeof one);
        const size_t left = bytes - *place;
        if (one.header_bytes < sizeof one || one.header_bytes > left || one.bytes > left - one.header_bytes)
            return false;
        const bool packed = (one.flags & (LZ4 | ZSTANDARD)) != 0;
        *found = (ffm_contained_code){.packed = container + *place + one.header_bytes,
                                      .bytes = packed ? one.packed_bytes : one.bytes,
                                      .plain = packed ? one.plain_bytes : one.bytes,
                                      .flags = one.flags,
                                      .architecture = one.architecture};
        *place += one.header_bytes + one.bytes;
        if (one.kind == MACHINE_CODE && found->bytes <= one.bytes && found->plain <= LARGEST)
            return true;
    }
    return false;
}

/* In memory of its own: the program's heap may be what calls here. */
static bool unpack_zstandard(const ffm_contained_code *code, uint8_t *plain)
{
    const size_t bytes = ZSTD_estimateDCtxSize();
    void *memory = ffm_new_pages(bytes);
    if (memory == NULL)
        return false;
    ZSTD_DCtx *context = ZSTD_initStaticDCtx(memory, bytes);
    const bool whole =
        context != NULL && ZSTD_decompressDCtx(context, plain, code->plain, code->packed, code->bytes) == code->plain;
    munmap(memory, bytes);
    return whole;
}

bool ffm_container_unpack(const ffm_contained_code *code, uint8_t *plain)
{
    if ((code->flags & ZSTANDARD) != 0)
        return unpack_zstandard(code, plain);
    if ((code->flags & LZ4) != 0)
        return LZ4_decompress_safe((const char *)code->packed, (char *)plain, (int)code->bytes, (int)code->plain) ==
               (int)code->plain;
    memcpy(plain, code->packed, code->plain);
    return true;
}
