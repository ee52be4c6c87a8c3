#include "trace_code.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "mappings.h"
#include "trace_calls.h"

enum { PAGE = 4096, KNOWN = 1024 };

/* Mappings that contain translated code. */
static struct {
    bool locked;
    uint32_t count;
    struct {
        uint64_t start, end;
        bool fixed; /* only system calls change it */
    } known[KNOWN];
} code;

/* Not one of the C library, which is itself translated. */
static void lock(void)
{
    while (__atomic_exchange_n(&code.locked, true, __ATOMIC_ACQUIRE))
        __builtin_ia32_pause();
}

static void unlock(void)
{
    __atomic_store_n(&code.locked, false, __ATOMIC_RELEASE);
}

uint64_t ffm_collector_trace_replaced;

static __thread uint64_t seen __attribute__((tls_model("initial-exec"))); /* replacements, when it was followed */

static void (*translate_again)(void);

void ffm_trace_code_open(void (*again)(void))
{
    translate_again = again;
}

void ffm_trace_code_begins(void)
{
    seen = __atomic_load_n(&ffm_collector_trace_replaced, __ATOMIC_ACQUIRE);
}

uint64_t ffm_collector_trace_seen(void)
{
    return seen;
}

/* The kernel's own functions are no file. */
static bool is_fixed(const ffm_mapping *mapping)
{
    return mapping->is_private && !mapping->writable &&
           (mapping->of_file || mapping->start == getauxval(AT_SYSINFO_EHDR));
}

bool ffm_collector_trace_changes(uint64_t address)
{
    lock();
    uint32_t i = 0;
    while (i < code.count && (address < code.known[i].start || address >= code.known[i].end))
        i++;
    bool fixed = false;
    if (i < code.count) {
        fixed = code.known[i].fixed;
    } else if (code.count < KNOWN) {
        const ffm_mapping mapping = ffm_mappings_at(address);
        fixed = is_fixed(&mapping);
        if (mapping.end != 0) {
            code.known[code.count].start = mapping.start;
            code.known[code.count].end = mapping.end;
            code.known[code.count++].fixed = fixed;
        }
    }
    unlock();
    return !fixed;
}

/* Code in [start, end) is about to be replaced, or may be written from now on. */
static void change(uint64_t start, uint64_t end, bool written)
{
    bool replaced = false;
    lock();
    for (uint32_t i = code.count; i > 0; i--) {
        if (end <= code.known[i - 1].start || start >= code.known[i - 1].end)
            continue;
        replaced = replaced || code.known[i - 1].fixed;
        if (written)
            code.known[i - 1].fixed = false;
        else
            code.known[i - 1] = code.known[--code.count];
    }
    if (replaced)
        __atomic_add_fetch(&ffm_collector_trace_replaced, 1, __ATOMIC_ACQ_REL);
    unlock();
}

static void change_bytes(uint64_t start, uint64_t bytes, bool written)
{
    if (bytes != 0)
        change(start, start + bytes + PAGE - 1, written);
}

void ffm_trace_code_before(uint64_t number, const uint64_t *a)
{
    switch (number) {
    case SYS_munmap:
        change_bytes(a[0], a[1], false);
        break;
    case SYS_mmap:
        if (a[3] & MAP_FIXED)
            change_bytes(a[0], a[1], false);
        break;
    case SYS_mremap:
        change_bytes(a[0], a[1], false);
        if (a[3] & MREMAP_FIXED)
            change_bytes(a[4], a[2], false);
        break;
    case SYS_mprotect:
    case SYS_pkey_mprotect:
        if (a[2] & PROT_WRITE)
            change_bytes(a[0], a[1], true);
        break;
    default:
        break;
    }
}

void ffm_trace_code_after_fork(void)
{
    unlock(); /* a thread that no longer exists may have held it */
}

/* ---- leaving a translation that is out of date ------------------------------------------------------------------- */

void ffm_collector_trace_begin_again(void)
{
    const int error = errno;
    translate_again();
    errno = error;
}

/* A block jumps here with the address of its code on top of the stack and the program's red zone behind it. All
 * registers are kept, also the vectors: Frida's code uses them. From the call's return on, this is translated. */
__asm__(".pushsection .text\n"
        ".globl ffm_collector_trace_anew\n"
        ".type ffm_collector_trace_anew, @function\n"
        "ffm_collector_trace_anew:\n"
        "pushfq\n"
        "cld\n"
        "push %rax; push %rcx; push %rdx; push %rbx; push %rbp; push %rsi; push %rdi\n"
        "push %r8; push %r9; push %r10; push %r11; push %r12; push %r13; push %r14; push %r15\n"
        "mov %rsp, %rbp\n"
        "sub $2752, %rsp\n" /* XSAVE's area, without tiles */
        "and $-64, %rsp\n"
        "xor %eax, %eax\n"
        "lea 512(%rsp), %rdi\n" /* its header */
        "mov $8, %ecx\n"
        "rep stosq\n"
        "mov $0xe7, %eax\n" /* x87, SSE, AVX, and the three parts of AVX-512 */
        "xor %edx, %edx\n"
        "xsave64 (%rsp)\n"
        "call ffm_collector_trace_begin_again\n"
        "mov $0xe7, %eax\n"
        "xor %edx, %edx\n"
        "xrstor64 (%rsp)\n"
        "mov %rbp, %rsp\n"
        "pop %r15; pop %r14; pop %r13; pop %r12; pop %r11; pop %r10; pop %r9; pop %r8\n"
        "pop %rdi; pop %rsi; pop %rbp; pop %rbx; pop %rdx; pop %rcx; pop %rax\n"
        "popfq\n"
        "ret $128\n"
        ".size ffm_collector_trace_anew, . - ffm_collector_trace_anew\n"
        ".popsection\n");
