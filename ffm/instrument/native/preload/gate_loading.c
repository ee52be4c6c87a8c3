#include "gate_loading.h"

#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define DRIVER "libcuda.so"

static const char *const askers[] = {"dlopen", "dlmopen", "dlsym", "dlvsym"};
static const char *const without[] = {"libffm_", "libc.so.", "ld-linux", "linux-vdso."}; /* ours, and the system's */

typedef struct {
    const ElfW(Sym) * symbols;
    const char *names;
    const ElfW(Rela) * relocations[2]; /* of data, and of functions */
    size_t bytes[2];
} tables;

/* The dynamic linker replaces offsets by addresses. */
static const void *address(const struct dl_phdr_info *module, ElfW(Addr) value)
{
    return (const void *)(value < module->dlpi_addr ? module->dlpi_addr + value : value);
}

static tables tables_of(const struct dl_phdr_info *module, const ElfW(Dyn) * entry)
{
    tables found = {0};
    for (; entry->d_tag != DT_NULL; entry++) {
        const ElfW(Addr) value = entry->d_un.d_ptr;
        if (entry->d_tag == DT_SYMTAB)
            found.symbols = address(module, value);
        else if (entry->d_tag == DT_STRTAB)
            found.names = address(module, value);
        else if (entry->d_tag == DT_RELA)
            found.relocations[0] = address(module, value);
        else if (entry->d_tag == DT_RELASZ)
            found.bytes[0] = entry->d_un.d_val;
        else if (entry->d_tag == DT_JMPREL)
            found.relocations[1] = address(module, value);
        else if (entry->d_tag == DT_PLTRELSZ)
            found.bytes[1] = entry->d_un.d_val;
    }
    return found;
}

static bool is_asker(const char *name)
{
    for (size_t i = 0; i < sizeof askers / sizeof *askers; i++)
        if (strcmp(name, askers[i]) == 0)
            return true;
    return false;
}

/* Whatever a module imports, it relocates. */
static bool asks(const tables *of)
{
    for (int kind = 0; kind < 2 && of->symbols != NULL && of->names != NULL; kind++)
        for (size_t i = 0; of->relocations[kind] != NULL && i < of->bytes[kind] / sizeof(ElfW(Rela)); i++) {
            const ElfW(Sym) *symbol = &of->symbols[ELF64_R_SYM(of->relocations[kind][i].r_info)];
            if (symbol->st_name != 0 && symbol->st_shndx == SHN_UNDEF && is_asker(of->names + symbol->st_name))
                return true;
        }
    return false;
}

static int look(struct dl_phdr_info *module, size_t bytes, void *unused)
{
    (void)bytes, (void)unused;
    const char *slash = strrchr(module->dlpi_name, '/');
    const char *file = slash == NULL ? module->dlpi_name : slash + 1;
    for (size_t i = 0; i < sizeof without / sizeof *without; i++)
        if (strncmp(file, without[i], strlen(without[i])) == 0)
            return 0;
    if (strncmp(file, DRIVER, sizeof DRIVER - 1) == 0)
        return 1;
    for (int i = 0; i < module->dlpi_phnum; i++) {
        if (module->dlpi_phdr[i].p_type != PT_DYNAMIC)
            continue;
        const tables found = tables_of(module, address(module, module->dlpi_phdr[i].p_vaddr));
        if (asks(&found))
            return 1;
    }
    return 0;
}

bool ffm_gate_may_load(void)
{
    return dl_iterate_phdr(look, NULL) != 0;
}
