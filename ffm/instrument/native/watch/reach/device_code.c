#include "device_code.h"

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The layout of containers and of their wrappers is undocumented; ffm/driver/device_code.py reads it too. */
enum { WRAPPER = 0x466243B1, CONTAINER = 0xBA55ED50, MACHINE = 2, COMPRESSED = 0x2000 | 0x8000 };

typedef struct {
    uint32_t magic, version;
    const void *container;
} wrapper;

typedef struct {
    uint32_t magic;
    uint16_t version, header_bytes;
    uint64_t bytes; /* of what follows the header */
} container;

typedef struct {
    uint16_t kind, version;
    uint32_t header_bytes;
    uint64_t bytes; /* of the code, which follows the header */
    uint32_t unused[6];
    uint64_t flags;
} entry;

static uint32_t magic_of(const void *image)
{
    uint32_t magic;
    memcpy(&magic, image, sizeof magic);
    return magic;
}

/* Bytes of all variables; FFM_CODE_UNKNOWN if that is not known. */
static uint64_t in_machine_code(const char *code)
{
    uint64_t bytes = 0;
    Elf64_Ehdr header;
    Elf64_Shdr section, names;
    memcpy(&header, code, sizeof header);
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || (header.e_shnum != 0 && header.e_shentsize != sizeof section) ||
        (header.e_shnum == 0 && header.e_shoff != 0) || header.e_shstrndx == SHN_XINDEX)
        return FFM_CODE_UNKNOWN;
    const char *sections = code + header.e_shoff;
    for (uint32_t i = 0; i < header.e_shnum; i++) {
        memcpy(&names, sections + header.e_shstrndx * sizeof section, sizeof names);
        memcpy(&section, sections + i * sizeof section, sizeof section);
        const char *name = code + names.sh_offset + section.sh_name;
        if (strncmp(name, ".nv.global", strlen(".nv.global")) == 0)
            bytes += section.sh_size > 0 ? section.sh_size : 1;
    }
    return bytes;
}

/* In instructions, the word is part of a longer one. */
static bool text_lacks(const char *text)
{
    static const char word[] = ".global";
    for (const char *found = text; (found = strstr(found, word)) != NULL; found += sizeof word - 1)
        if (found == text || strchr(" \t\r\n;}/", found[-1]) != NULL)
            return false;
    return true;
}

static bool is_machine_code(const void *image)
{
    return memcmp(image, ELFMAG, SELFMAG) == 0;
}

static uint64_t in_container(const char *place)
{
    container header;
    memcpy(&header, place, sizeof header);
    place += header.header_bytes;
    const char *end = place + header.bytes;
    bool seen = false;
    uint64_t most = 0;
    while ((size_t)(end - place) >= sizeof(entry)) {
        entry code;
        memcpy(&code, place, sizeof code);
        if (code.header_bytes < sizeof code || code.header_bytes > (size_t)(end - place))
            return FFM_CODE_UNKNOWN;
        place += code.header_bytes;
        if (code.bytes > (size_t)(end - place))
            return FFM_CODE_UNKNOWN;
        if (code.kind == MACHINE) {
            if ((code.flags & COMPRESSED) != 0 || code.bytes < sizeof(Elf64_Ehdr) || !is_machine_code(place))
                return FFM_CODE_UNKNOWN;
            const uint64_t bytes = in_machine_code(place);
            most = bytes > most ? bytes : most;
            seen = true;
        }
        place += code.bytes;
    }
    return seen ? most : FFM_CODE_UNKNOWN;
}

uint64_t ffm_device_code_variables(const void *image)
{
    if (image == NULL)
        return FFM_CODE_UNKNOWN;
    if (magic_of(image) == WRAPPER) {
        wrapper wrapped;
        memcpy(&wrapped, image, sizeof wrapped);
        image = wrapped.container;
        if (image == NULL)
            return FFM_CODE_UNKNOWN;
    }
    if (magic_of(image) == CONTAINER)
        return in_container(image);
    if (is_machine_code(image))
        return in_machine_code(image);
    const char *text = image;
    const bool lacks = strstr(text, ".version") != NULL && strstr(text, ".target") != NULL && text_lacks(text);
    return lacks ? 0 : FFM_CODE_UNKNOWN;
}
