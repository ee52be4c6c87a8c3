#include "dispatch_places.h"

#include <stddef.h>

#include "resting.h"

enum { SITES = 32 };

/* One place per site, because nothing else survives such a call. They preserve the registers that the kernel preserves,
 * and the 128 bytes below the stack pointer that belong to the code there. */
#define ONE_SITE(number)                                                                                               \
    "ffm_dispatch_plain_" #number ":\n"                                                                                \
    "syscall\n"                                                                                                        \
    "jmp *ffm_dispatch_sites+8*" #number "(%rip)\n"                                                                    \
    ".balign 64\n"                                                                                                     \
    "ffm_dispatch_thread_" #number ":\n"                                                                               \
    "syscall\n"                                                                                                        \
    "test %rax, %rax\n"                                                                                                \
    "jnz 1f\n"                                                                                                         \
    "call ffm_dispatch_new_thread\n"                                                                                   \
    "1: jmp *ffm_dispatch_sites+8*" #number "(%rip)\n"                                                                 \
    ".balign 64\n"                                                                                                     \
    "syscall\n"                                                                                                        \
    "test %rax, %rax\n"                                                                                                \
    "jz 1f\n"                                                                                                          \
    "lea -128(%rsp), %rsp\n"                                                                                           \
    "call ffm_dispatch_parent\n"                                                                                       \
    "lea 128(%rsp), %rsp\n"                                                                                            \
    "1: jmp *ffm_dispatch_sites+8*" #number "(%rip)\n"                                                                 \
    ".balign 64\n"                                                                                                     \
    "syscall\n"                                                                                                        \
    "lea -128(%rsp), %rsp\n"                                                                                           \
    "test %rax, %rax\n"                                                                                                \
    "jz 1f\n"                                                                                                          \
    "call ffm_dispatch_lender\n"                                                                                       \
    "jmp 2f\n"                                                                                                         \
    "1: call ffm_dispatch_child\n"                                                                                     \
    "2: lea 128(%rsp), %rsp\n"                                                                                         \
    "jmp *ffm_dispatch_sites+8*" #number "(%rip)\n"                                                                    \
    ".balign 64\n"

/* A function `name` that calls `called` and preserves all registers that the kernel preserves. */
#define PRESERVING(name, called)                                                                                       \
    __asm__(".text\n"                                                                                                  \
            ".hidden " #called "\n" #name ":\n"                                                                        \
            "push %rbp\n"                                                                                              \
            "mov %rsp, %rbp\n"                                                                                         \
            "push %rax\n"                                                                                              \
            "push %rdi\n"                                                                                              \
            "push %rsi\n"                                                                                              \
            "push %rdx\n"                                                                                              \
            "push %r8\n"                                                                                               \
            "push %r9\n"                                                                                               \
            "push %r10\n"                                                                                              \
            "and $-16, %rsp\n"                                                                                         \
            "sub $512, %rsp\n"                                                                                         \
            "fxsave64 (%rsp)\n"                                                                                        \
            "call " #called "\n"                                                                                       \
            "fxrstor64 (%rsp)\n"                                                                                       \
            "lea -56(%rbp), %rsp\n"                                                                                    \
            "pop %r10\n"                                                                                               \
            "pop %r9\n"                                                                                                \
            "pop %r8\n"                                                                                                \
            "pop %rdx\n"                                                                                               \
            "pop %rsi\n"                                                                                               \
            "pop %rdi\n"                                                                                               \
            "pop %rax\n"                                                                                               \
            "pop %rbp\n"                                                                                               \
            "ret\n")

PRESERVING(ffm_dispatch_new_thread, ffm_dispatch_begin);
PRESERVING(ffm_dispatch_parent, ffm_dispatch_forked);
PRESERVING(ffm_dispatch_child, ffm_dispatch_child_begins);
PRESERVING(ffm_dispatch_lender, ffm_dispatch_child_over);

__asm__(".text\n"
        ".hidden ffm_dispatch_sites\n"
        ".globl ffm_dispatch_places\n"
        ".hidden ffm_dispatch_places\n"
        ".balign 64\n"
        "ffm_dispatch_places:\n" /* 64 bytes for each kind at each site */
        ONE_SITE(0) ONE_SITE(1) ONE_SITE(2) ONE_SITE(3) ONE_SITE(4) ONE_SITE(5) ONE_SITE(6) ONE_SITE(7) ONE_SITE(8)
            ONE_SITE(9) ONE_SITE(10) ONE_SITE(11) ONE_SITE(12) ONE_SITE(13) ONE_SITE(14) ONE_SITE(15) ONE_SITE(16)
                ONE_SITE(17) ONE_SITE(18) ONE_SITE(19) ONE_SITE(20) ONE_SITE(21) ONE_SITE(22) ONE_SITE(23) ONE_SITE(24)
                    ONE_SITE(25) ONE_SITE(26) ONE_SITE(27) ONE_SITE(28) ONE_SITE(29) ONE_SITE(30) ONE_SITE(31));

enum { PLACE_BYTES = 64 };

uint64_t ffm_dispatch_sites[SITES];
extern const char ffm_dispatch_places[];

bool ffm_dispatch_redirect(greg_t *registers, ffm_place kind)
{
    const uint64_t behind = (uint64_t)registers[REG_RIP];
    for (uint32_t site = 0; site < SITES; site++) {
        uint64_t there = 0;
        if (__atomic_compare_exchange_n(&ffm_dispatch_sites[site], &there, behind, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE) ||
            there == behind) {
            registers[REG_RIP] = (greg_t)(ffm_dispatch_places + (size_t)(FFM_PLACES * site + kind) * PLACE_BYTES);
            return true;
        }
    }
    ffm_resting_without_keys(); /* a thread that is started unseen would inherit the right to use them */
    registers[REG_RIP] -= 2;    /* the instruction itself */
    return false;
}
