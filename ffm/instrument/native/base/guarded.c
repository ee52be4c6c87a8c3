#include "guarded.h"

#include <stddef.h>
#include <string.h>
#include <sys/uio.h>

#include "kernel.h"
#include "mappings.h"
#include "traced.h"

enum { PAGE = 4096, PROBES = 64 };

/* What this thread's action reads, and the stack pointer to return with if it is abandoned; 0 outside of actions. */
typedef struct {
    uint64_t start, end, resume;
} guard;

static __thread guard current __attribute__((tls_model("initial-exec")));

/* Calls `action(context)` with its stack pointer in *resume. Returns true, or false if it was abandoned. */
bool ffm_guarded_call(void (*action)(void *), void *context, uint64_t *resume) __attribute__((visibility("hidden")));
extern const char ffm_guarded_resume[] __attribute__((visibility("hidden")));

__asm__(".pushsection .text\n"
        ".globl ffm_guarded_call\n"
        ".hidden ffm_guarded_call\n"
        ".type ffm_guarded_call, @function\n"
        "ffm_guarded_call:\n"
        ".cfi_startproc\n"
        "push %rbp\n"
        ".cfi_adjust_cfa_offset 8\n"
        "push %rbx\n"
        ".cfi_adjust_cfa_offset 8\n"
        "push %r12\n"
        ".cfi_adjust_cfa_offset 8\n"
        "push %r13\n"
        ".cfi_adjust_cfa_offset 8\n"
        "push %r14\n"
        ".cfi_adjust_cfa_offset 8\n"
        "push %r15\n"
        ".cfi_adjust_cfa_offset 8\n"
        "push %rdx\n"
        ".cfi_adjust_cfa_offset 8\n"
        "mov %rsp, (%rdx)\n"
        "mov %rdi, %rax\n"
        "mov %rsi, %rdi\n"
        "call *%rax\n"
        "mov $1, %eax\n"
        "jmp 1f\n"
        ".globl ffm_guarded_resume\n"
        ".hidden ffm_guarded_resume\n"
        "ffm_guarded_resume:\n"
        "cld\n"
        "xor %eax, %eax\n"
        "1: pop %rdx\n"
        ".cfi_adjust_cfa_offset -8\n"
        "pop %r15\n"
        ".cfi_adjust_cfa_offset -8\n"
        "pop %r14\n"
        ".cfi_adjust_cfa_offset -8\n"
        "pop %r13\n"
        ".cfi_adjust_cfa_offset -8\n"
        "pop %r12\n"
        ".cfi_adjust_cfa_offset -8\n"
        "pop %rbx\n"
        ".cfi_adjust_cfa_offset -8\n"
        "pop %rbp\n"
        ".cfi_adjust_cfa_offset -8\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size ffm_guarded_call, . - ffm_guarded_call\n"
        ".popsection\n");

bool ffm_guarded_abandon(const siginfo_t *info, ucontext_t *context)
{
    const uint64_t address = (uint64_t)info->si_addr;
    const bool unknown = info->si_code == SI_KERNEL; /* of an address that no memory can have */
    if (current.resume == 0 || (!unknown && (address < current.start || address >= current.end)))
        return false; /* perhaps of a handler of the program, which has interrupted the action */
    context->uc_mcontext.gregs[REG_RSP] = (greg_t)current.resume;
    context->uc_mcontext.gregs[REG_RIP] = (greg_t)ffm_guarded_resume;
    return true;
}

/* Whether the kernel can read a byte of each page; it cannot read some drivers' page-locked memory. */
static bool kernel_reads(uint64_t start, uint64_t end)
{
    char bytes[PROBES];
    struct iovec pages[PROBES], here = {bytes, 0};
    const uint64_t self = (uint64_t)ffm_kernel(SYS_getpid, 0, 0, 0, 0);
    for (uint64_t at = start; at < end;) {
        here.iov_len = 0;
        for (; at < end && here.iov_len < PROBES; at = (at | (PAGE - 1)) + 1)
            pages[here.iov_len++] = (struct iovec){(void *)at, 1};
        const uint64_t arguments[6] = {self, (uint64_t)&here, 1, (uint64_t)pages, here.iov_len, 0};
        if (ffm_kernel_call(SYS_process_vm_readv, arguments) != (int64_t)here.iov_len)
            return false;
    }
    return true;
}

bool ffm_guarded_readable(uint64_t start, uint64_t end)
{
    return start <= end && kernel_reads(start, end);
}

bool ffm_guarded(void (*action)(void *context), void *context, uint64_t start, uint64_t end)
{
    if (!ffm_trace_on()) {
        const guard before = current; /* of what a handler has interrupted */
        current = (guard){.start = start, .end = start <= end ? end : UINT64_MAX};
        const bool whole = ffm_guarded_call(action, context, &current.resume);
        current = before;
        return whole;
    }
    if (start > end || !(kernel_reads(start, end) || ffm_mappings_readable(start, end)))
        return false;
    action(context);
    return true;
}

typedef struct {
    void *to;
    const void *from;
    uint64_t bytes;
} copying;

static void copy(void *opaque)
{
    copying wanted = *(const copying *)opaque;
    __asm__ volatile("rep movsb" : "+D"(wanted.to), "+S"(wanted.from), "+c"(wanted.bytes) : : "memory");
}

bool ffm_guarded_read(void *to, uint64_t from, uint64_t bytes)
{
    copying wanted = {to, (const void *)from, bytes};
    return ffm_guarded(copy, &wanted, from, from + bytes);
}

bool ffm_guarded_write(uint64_t to, const void *from, uint64_t bytes)
{
    copying wanted = {(void *)to, from, bytes};
    return ffm_guarded(copy, &wanted, to, to + bytes);
}

typedef struct {
    const char *start, *end; /* of a page, or its rest */
    const char *found;
} page_search;

static void find_end(void *opaque)
{
    page_search *page = opaque;
    page->found = memchr(page->start, '\0', (size_t)(page->end - page->start));
}

uint64_t ffm_guarded_text(uint64_t start)
{
    for (uint64_t at = start;; at = (at | (PAGE - 1)) + 1) {
        page_search page = {.start = (const char *)at, .end = (const char *)((at | (PAGE - 1)) + 1)};
        if (!ffm_guarded(find_end, &page, at, (uint64_t)page.end))
            return 0;
        if (page.found != NULL)
            return (uint64_t)page.found + 1 - start;
    }
}
