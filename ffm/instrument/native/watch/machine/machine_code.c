#include "machine_code.h"

#include <elf.h>
#include <stdbool.h>
#include <string.h>

#include "machine_encoding.h"
#include "machine_instruction.h"

enum { EM_GPU = 190, MOST_SECTIONS = 1 << 16, MOST_BYTES = 1 << 16 };

/* In sections .nv.info, an attribute has a format, a kind, and two bytes that are its value or the value's size. */
enum { WITH_SIZE = 4, PLACE_OF_PARAMETERS = 0x0a, PLACE_BYTES = 8 };

static const char of_kernel[] = ".nv.info.", text_of[] = ".text.", table_of_addresses[] = ".nv.constant4";

typedef struct {
    const uint8_t *code;
    size_t bytes;
    uint64_t table, names; /* offsets of the sections' headers, and of their names */
    uint64_t names_bytes;
    uint32_t sections, architecture;
    uint8_t relocated[MOST_SECTIONS / 8]; /* sections to which relocations apply, one bit each */
} image;

/* CUDA 13 and 12 write the architecture to different bits of the flags; 0 for other layouts. */
static uint32_t architecture_of(const Elf64_Ehdr *header)
{
    const uint8_t system = header->e_ident[EI_OSABI], version = header->e_ident[EI_ABIVERSION];
    if (system == 65 && version == 8)
        return header->e_flags >> 8 & 0xff;
    return system == 51 && version == 7 ? header->e_flags & 0xff : 0;
}

static bool known(const Elf64_Ehdr *header)
{
    return memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 && header->e_ident[EI_CLASS] == ELFCLASS64 &&
           header->e_machine == EM_GPU && header->e_type == ET_EXEC && header->e_shentsize == sizeof(Elf64_Shdr) &&
           header->e_shnum != 0 && header->e_shstrndx < header->e_shnum &&
           ffm_parameters_begin(architecture_of(header)) != 0;
}

size_t ffm_machine_code_bytes(const uint8_t *code, size_t begin)
{
    Elf64_Ehdr header;
    if (begin < sizeof header)
        return 0;
    memcpy(&header, code, sizeof header);
    const uint64_t table = (uint64_t)header.e_shnum * sizeof(Elf64_Shdr);
    if (!known(&header) || header.e_shoff < sizeof header || header.e_shoff > PTRDIFF_MAX - table)
        return 0;
    return header.e_shoff + table;
}

static Elf64_Shdr section_at(const image *of, uint32_t place)
{
    Elf64_Shdr section;
    memcpy(&section, of->code + of->table + place * sizeof section, sizeof section);
    return section;
}

static bool within(const image *of, const Elf64_Shdr *section)
{
    return section->sh_type != SHT_NOBITS && section->sh_offset <= of->bytes &&
           section->sh_size <= of->bytes - section->sh_offset;
}

/* NULL if it does not end within the names. */
static const char *name_of(const image *of, const Elf64_Shdr *section)
{
    if (section->sh_name >= of->names_bytes)
        return NULL;
    const char *name = (const char *)of->code + of->names + section->sh_name;
    return memchr(name, 0, of->names_bytes - section->sh_name) == NULL ? NULL : name;
}

static bool open_image(image *of, const uint8_t *code, size_t bytes)
{
    Elf64_Ehdr header;
    const size_t whole = ffm_machine_code_bytes(code, bytes);
    if (whole == 0 || whole > bytes)
        return false;
    memcpy(&header, code, sizeof header);
    *of = (image){.code = code,
                  .bytes = bytes,
                  .table = header.e_shoff,
                  .sections = header.e_shnum,
                  .architecture = architecture_of(&header)};
    const Elf64_Shdr names = section_at(of, header.e_shstrndx);
    if (!within(of, &names))
        return false;
    of->names = names.sh_offset;
    of->names_bytes = names.sh_size;
    for (uint32_t place = 0; place < of->sections; place++) {
        const Elf64_Shdr section = section_at(of, place);
        if ((section.sh_type == SHT_REL || section.sh_type == SHT_RELA) && section.sh_size != 0 &&
            section.sh_info < MOST_SECTIONS)
            of->relocated[section.sh_info / 8] |= (uint8_t)(1 << section.sh_info % 8);
    }
    return true;
}

/* Whether an address in a table is that of data, or of the function that prints failed assertions. */
static bool is_data_or_assertion(const image *of, const Elf64_Shdr *symbols, uint64_t number)
{
    Elf64_Sym symbol;
    if (number >= symbols->sh_size / sizeof symbol || symbols->sh_link >= of->sections)
        return false;
    memcpy(&symbol, of->code + symbols->sh_offset + number * sizeof symbol, sizeof symbol);
    if (ELF64_ST_TYPE(symbol.st_info) == STT_OBJECT)
        return true;
    const Elf64_Shdr names = section_at(of, symbols->sh_link);
    static const char asserting[] = "__assertfail";
    return ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && within(of, &names) && symbol.st_name < names.sh_size &&
           names.sh_size - symbol.st_name >= sizeof asserting &&
           memcmp(of->code + names.sh_offset + symbol.st_name, asserting, sizeof asserting) == 0;
}

static bool names_only_assertions(const image *of, const Elf64_Shdr *relocations)
{
    const uint64_t entry = relocations->sh_type == SHT_REL ? sizeof(Elf64_Rel) : sizeof(Elf64_Rela);
    if (!within(of, relocations) || relocations->sh_link >= of->sections)
        return false;
    const Elf64_Shdr symbols = section_at(of, relocations->sh_link);
    if (symbols.sh_type != SHT_SYMTAB || !within(of, &symbols))
        return false;
    for (uint64_t place = 0; place + entry <= relocations->sh_size; place += entry) {
        Elf64_Rel relocation; /* the other kind begins so, too */
        memcpy(&relocation, of->code + relocations->sh_offset + place, sizeof relocation);
        if (!is_data_or_assertion(of, &symbols, ELF64_R_SYM(relocation.r_info)))
            return false;
    }
    return true;
}

/* Whether constant bank 4, with the addresses of variables and functions, names no function but the one that prints
 * failed assertions. */
static bool asserts(const image *of)
{
    for (uint32_t place = 0; place < of->sections; place++) {
        const Elf64_Shdr section = section_at(of, place);
        if ((section.sh_type != SHT_REL && section.sh_type != SHT_RELA) || section.sh_info >= of->sections)
            continue;
        const Elf64_Shdr table = section_at(of, section.sh_info);
        const char *name = name_of(of, &table);
        if (name == NULL || (strncmp(name, table_of_addresses, sizeof table_of_addresses - 1) == 0 &&
                             !names_only_assertions(of, &section)))
            return false;
    }
    return true;
}

/* How many bytes of parameters a kernel has, from its attributes; 0 if they are not where they are expected. */
static uint32_t bytes_of_parameters(const image *of, const Elf64_Shdr *attributes)
{
    const uint8_t *next = of->code + attributes->sh_offset;
    uint64_t left = attributes->sh_size;
    uint32_t found = 0;
    while (left >= 4) {
        uint16_t value[2], size = 0;
        const uint8_t format = next[0], kind = next[1];
        if (format == WITH_SIZE)
            memcpy(&size, next + 2, sizeof size);
        if (format == 0 || format > WITH_SIZE || size > left - 4)
            return 0;
        if (kind == PLACE_OF_PARAMETERS) {
            if (format != WITH_SIZE || size != PLACE_BYTES || found != 0)
                return 0;
            memcpy(value, next + 8, sizeof value); /* behind the number of a symbol */
            if (value[0] != ffm_parameters_begin(of->architecture) || value[1] == 0)
                return 0;
            found = value[1];
        }
        next += 4 + size;
        left -= 4u + size;
    }
    return left == 0 ? found : 0;
}

/* Set the bits of the bytes that code reads, and whether it reads other banks. Returns whether all that it may read of
 * the parameters' bank is known. */
static bool follow(const image *of, const Elf64_Shdr *text, uint8_t *read, uint32_t parameters, bool *other)
{
    const uint32_t first = ffm_parameters_begin(of->architecture);
    for (uint64_t offset = 0; offset < text->sh_size; offset += FFM_INSTRUCTION_BYTES) {
        uint64_t word[2];
        memcpy(word, of->code + text->sh_offset + offset, sizeof word);
        const ffm_bank_read one = ffm_instruction_reads(of->architecture, word, offset, text->sh_size);
        *other |= one.other;
        if (one.indexed) { /* an array among the parameters. What is added to the index can lie before them. */
            memset(read, 0xff, (parameters + 7) / 8);
            continue;
        }
        if (one.all ||
            (one.bytes != 0 && one.begin < first && !ffm_harmless_before_parameters(of->architecture, one.begin)))
            return false;
        for (uint32_t place = one.begin; place < one.begin + one.bytes; place++)
            if (place >= first && place - first < parameters)
                read[(place - first) / 8] |= (uint8_t)(1 << (place - first) % 8);
    }
    return true;
}

static bool is_text_of(const image *of, const Elf64_Shdr *text, uint32_t place, const char *kernel)
{
    const char *name = name_of(of, text);
    return text->sh_type == SHT_PROGBITS && within(of, text) && text->sh_size != 0 &&
           text->sh_size % FFM_INSTRUCTION_BYTES == 0 && (of->relocated[place / 8] & 1 << place % 8) == 0 &&
           name != NULL && strncmp(name, text_of, sizeof text_of - 1) == 0 &&
           strcmp(name + sizeof text_of - 1, kernel) == 0;
}

void ffm_machine_code_kernels(const uint8_t *code, size_t bytes, void (*found)(const ffm_kernel_code *, void *),
                              void *context)
{
    image of;
    uint8_t read[MOST_BYTES / 8];
    if (!open_image(&of, code, bytes))
        return;
    const bool only_asserts = asserts(&of);
    for (uint32_t place = 0; place < of.sections; place++) {
        const Elf64_Shdr attributes = section_at(&of, place);
        const char *name = name_of(&of, &attributes);
        if (name == NULL || strncmp(name, of_kernel, sizeof of_kernel - 1) != 0 || !within(&of, &attributes) ||
            attributes.sh_info >= of.sections)
            continue;
        const Elf64_Shdr text = section_at(&of, attributes.sh_info);
        const char *kernel = name + sizeof of_kernel - 1;
        const uint32_t parameters = bytes_of_parameters(&of, &attributes);
        bool other = false;
        memset(read, 0, sizeof read);
        if (parameters == 0 || !is_text_of(&of, &text, attributes.sh_info, kernel) ||
            !follow(&of, &text, read, parameters, &other))
            continue;
        const ffm_kernel_code one = {.name = kernel,
                                     .read = read,
                                     .text = code + text.sh_offset,
                                     .text_bytes = text.sh_size,
                                     .bytes = parameters,
                                     .architecture = of.architecture,
                                     .asserts = only_asserts,
                                     .variables = other};
        found(&one, context);
    }
}
