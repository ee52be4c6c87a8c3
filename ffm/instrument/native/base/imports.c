#include "imports.h"

#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernel.h"

/* What of a loaded file is needed to find its imports. */
typedef struct {
    uint64_t start;
    const ElfW(Sym) * symbols;
    const char *names;
    const ElfW(Rela) * relocations[2];
    uint64_t counts[2];
    uint64_t sealed, sealed_end; /* read-only once it is relocated */
} image;

/* The dynamic linker adds the file's address to the pointers in its table. */
static uint64_t pointer(const image *file, uint64_t value)
{
    return value < file->start ? file->start + value : value;
}

static void read_dynamic(image *file, const ElfW(Dyn) * entry)
{
    for (; entry->d_tag != DT_NULL; entry++) {
        const uint64_t value = entry->d_un.d_val;
        if (entry->d_tag == DT_SYMTAB)
            file->symbols = (const ElfW(Sym) *)pointer(file, value);
        else if (entry->d_tag == DT_STRTAB)
            file->names = (const char *)pointer(file, value);
        else if (entry->d_tag == DT_RELA)
            file->relocations[0] = (const ElfW(Rela) *)pointer(file, value);
        else if (entry->d_tag == DT_RELASZ)
            file->counts[0] = value / sizeof(ElfW(Rela));
        else if (entry->d_tag == DT_JMPREL)
            file->relocations[1] = (const ElfW(Rela) *)pointer(file, value);
        else if (entry->d_tag == DT_PLTRELSZ)
            file->counts[1] = value / sizeof(ElfW(Rela));
    }
}

static image image_at(uint64_t start)
{
    image file = {.start = start};
    const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)start;
    const ElfW(Phdr) *segment = (const ElfW(Phdr) *)(start + header->e_phoff);
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    for (uint32_t i = 0; i < header->e_phnum; i++, segment++) {
        if (segment->p_type == PT_DYNAMIC)
            read_dynamic(&file, (const ElfW(Dyn) *)(start + segment->p_vaddr));
        if (segment->p_type == PT_GNU_RELRO) {
            file.sealed = (start + segment->p_vaddr) & ~(page - 1);
            file.sealed_end = (start + segment->p_vaddr + segment->p_memsz) & ~(page - 1);
        }
    }
    return file;
}

static bool lead(const image *file, uint64_t slot, void *function)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), start = slot & ~(page - 1);
    const bool sealed = file->sealed <= slot && slot < file->sealed_end;
    if (sealed && ffm_kernel(SYS_mprotect, start, page, PROT_READ | PROT_WRITE, 0) != 0)
        return false;
    __atomic_store_n((void **)slot, function, __ATOMIC_RELEASE);
    if (sealed)
        ffm_kernel(SYS_mprotect, start, page, PROT_READ, 0);
    return true;
}

bool ffm_imports_lead(uint64_t start, void *(*instead)(const char *name))
{
    const image read = image_at(start), *file = &read;
    bool all = true;
    if (file->symbols == NULL || file->names == NULL)
        return false;
    for (uint32_t table = 0; table < 2; table++)
        for (uint64_t i = 0; file->relocations[table] != NULL && i < file->counts[table]; i++) {
            const ElfW(Rela) *one = &file->relocations[table][i];
            const uint32_t type = ELF64_R_TYPE(one->r_info), symbol = ELF64_R_SYM(one->r_info);
            if (symbol == 0 || file->symbols[symbol].st_shndx != SHN_UNDEF ||
                (type != R_X86_64_64 && type != R_X86_64_GLOB_DAT && type != R_X86_64_JUMP_SLOT))
                continue;
            void *function = instead(file->names + file->symbols[symbol].st_name);
            if (function != NULL)
                all &= lead(file, file->start + one->r_offset, function);
        }
    return all;
}
