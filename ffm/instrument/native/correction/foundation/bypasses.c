#include "bypasses.h"

#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "unwinding.h"

/* At most this many bytes of instructions, which move the other arguments, come between a number and its `syscall`. */
enum { ARGUMENT_MOVES = 48 };

/* Bytes of an instruction's operands, from its ModRM byte on (Intel 64 and IA-32 Architectures Software Developer's
 * Manual, volume 2, section 2.1). */
static size_t operand_bytes(const uint8_t *at)
{
    uint8_t mode = at[0] >> 6, memory = at[0] & 7;
    if (mode == 3)
        return 1;
    bool indexed = memory == 4;
    bool far = mode == 2 || (mode == 0 && (memory == 5 || (indexed && (at[1] & 7) == 5)));
    return 1 + indexed + (mode == 1) + (far ? 4 : 0);
}

/* Bytes of an instruction that sets a register, in the forms that compilers use to pass arguments; 0 for any other. */
static size_t move_bytes(const uint8_t *at)
{
    size_t prefix = (at[0] & 0xF0) == 0x40;
    bool wide = prefix && (at[0] & 8);
    const uint8_t *code = at + prefix;
    switch (code[0]) {
    case 0x98: /* cltq */
        return prefix + 1;
    case 0x89: /* mov */
    case 0x8B:
    case 0x8D: /* lea */
    case 0x63: /* movslq */
    case 0x31: /* xor */
    case 0x33:
        return prefix + 1 + operand_bytes(code + 1);
    case 0xC7:
        return prefix + 1 + operand_bytes(code + 1) + 4;
    default:
        return (code[0] & 0xF8) == 0xB8 ? prefix + 1 + (wide ? 8 : 4) : 0;
    }
}

/* Whether a system call's number is set here: a small constant, zero for read, or one that a function for arbitrary
 * system calls receives in a register or in memory. */
static bool sets_number(const uint8_t *at)
{
    enum { WIDE = 0x48, REGISTER = 0xC0 };
    const uint8_t code = at[1], operand = at[2];
    if ((at[0] == 0x31 || at[0] == 0x33) && at[1] == 0xC0) /* xor eax, eax */
        return true;
    if (at[0] == 0xB8) /* mov eax, number */
        return at[2] <= 1 && at[3] == 0 && at[4] == 0;
    if (at[0] == 0x89) /* mov eax, edi */
        return at[1] == 0xF8;
    if (at[0] != WIDE)
        return false;
    return code == 0x98 ||                                            /* cltq */
           (code == 0x89 && (operand & 0xC7) == REGISTER) ||          /* mov rax, … */
           ((code == 0x8B || code == 0x63) && (operand & 0x38) == 0); /* mov rax, …; movslq rax, … */
}

/* Whether the two bytes really are the instruction `syscall`, not part of another one: the instructions that set its
 * number and arguments lead up to it. */
static bool is_system_call(const uint8_t *from, const uint8_t *at)
{
    const uint8_t *earliest = at - from > ARGUMENT_MOVES ? at - ARGUMENT_MOVES : from;
    for (const uint8_t *start = at - 2; start >= earliest; start--) {
        if ((start[0] == 0xB8 && at - start < 5) || !sets_number(start))
            continue;
        const uint8_t *next = start;
        for (size_t bytes = 1; next < at && bytes != 0; next += bytes)
            bytes = move_bytes(next);
        if (next == at)
            return true;
    }
    return false;
}

static bool in_code(const uint8_t *code, size_t bytes)
{
    const uint8_t *end = code + bytes;
    for (const uint8_t *at = code; end - at >= 2; at++) {
        at = memchr(at, 0x0F, (size_t)(end - at) - 1);
        if (at == NULL)
            return false;
        if (at[1] == 0x05 && at - code >= 2 && is_system_call(code, at))
            return true;
    }
    return false;
}

/* The C library and its loader are guarded. The driver's calls have their arguments checked. The rest belongs to
 * ffm. */
static bool is_known(const char *name)
{
    static const char *const known[] = {"/libc.so.", "/ld-linux", "linux-vdso", "/libcuda.so", "/libffm_"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strstr(name, known[i]) != NULL)
            return true;
    return false;
}

static bool is_mpi(const char *name)
{
    return strstr(name, "/libmpi") != NULL || strstr(name, "/libpmpi") != NULL;
}

static int visit(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    (void)data;
    if (is_known(info->dlpi_name))
        return 0;
    if (is_mpi(info->dlpi_name))
        return 1;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && (part->p_flags & (PF_X | PF_R)) == (PF_X | PF_R) &&
            in_code((const uint8_t *)(info->dlpi_addr + part->p_vaddr), part->p_filesz))
            return 1;
    }
    return 0;
}

static int count_loaded(struct dl_phdr_info *info, size_t size, void *loaded)
{
    (void)size;
    *(unsigned long long *)loaded = info->dlpi_adds;
    return 1;
}

static bool look(void)
{
    static unsigned long long looked_at;
    static bool found;
    unsigned long long loaded = 0;
    dl_iterate_phdr(count_loaded, &loaded);
    if (loaded != __atomic_load_n(&looked_at, __ATOMIC_ACQUIRE)) {
        if (dl_iterate_phdr(visit, NULL) != 0)
            __atomic_store_n(&found, true, __ATOMIC_RELEASE);
        __atomic_store_n(&looked_at, loaded, __ATOMIC_RELEASE);
    }
    return __atomic_load_n(&found, __ATOMIC_ACQUIRE);
}

bool ffm_bypasses_loaded(void)
{
    ffm_unwinding_begin();
    bool loaded = look();
    ffm_unwinding_end();
    return loaded;
}
