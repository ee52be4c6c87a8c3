/* Executes vector instructions with masks on a page that may not be touched, and says where the collector finds other
 * bytes than the mask selects. Exit status: how many instructions differ. */
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "masked.h"

enum { PAGE = 4096, MIDDLE = PAGE / 2, CODE = 20 };

static char *page;
static bool known;
static int faults;
static uint64_t start, end;

static void on_fault(int number, siginfo_t *info, void *opaque)
{
    const ucontext_t *context = opaque;
    uint8_t code[CODE];
    (void)number, (void)info;
    if (faults++ > 0)
        _exit(255); /* it faulted elsewhere, and would for ever */
    memcpy(code, (const void *)context->uc_mcontext.gregs[REG_RIP], sizeof code);
    known = ffm_masked_bytes(code, context, &start, &end);
    mprotect(page, PAGE, PROT_READ | PROT_WRITE);
}

/* The mask; the bytes before and behind the middle of the page; the instruction, with that in RDI and R9, 2 in RSI and
 * R10, a mask in k1 and k7, and by the highest bits in ymm2 and ymm10 (4 bytes) and ymm3 (8 bytes). */
#define WITH_BITS(X)                                                                                                   \
    X(0x0001, 0, 1, "vmovdqu8 (%%rdi), %%ymm0%{%%k1%}%{z%}")                                                           \
    X(0x8000, 15, 16, "vmovdqu8 (%%rdi), %%ymm0%{%%k1%}")                                                              \
    X(0x0ff0, 4, 12, "vmovdqu8 %%ymm16, (%%rdi)%{%%k1%}")                                                              \
    X(0x8001, 0, 16, "vmovdqu8 (%%r9), %%zmm17%{%%k7%}%{z%}")                                                          \
    X(0x0006, 2, 6, "vmovdqu16 (%%rdi), %%ymm0%{%%k1%}%{z%}")                                                          \
    X(0x0006, 4, 12, "vmovdqu32 (%%rdi), %%ymm0%{%%k1%}%{z%}")                                                         \
    X(0x0006, 8, 24, "vmovdqu64 (%%rdi), %%ymm0%{%%k1%}%{z%}")                                                         \
    X(0xff02, 4, 8, "vmovups (%%rdi), %%ymm0%{%%k1%}%{z%}")                                                            \
    X(0xff02, 8, 16, "vmovapd %%ymm0, (%%rdi)%{%%k1%}")                                                                \
    X(0x0002, 36, 40, "vmovdqu32 32(%%rdi), %%ymm0%{%%k1%}%{z%}")                                                      \
    X(0x0002, 12, 16, "vmovdqu32 (%%rdi,%%rsi,4), %%ymm0%{%%k1%}%{z%}")                                                \
    X(0x0002, 12, 16, "vmovdqu32 (%%r9,%%r10,4), %%ymm0%{%%k1%}%{z%}")                                                 \
    X(0x0002, 7, 11, "vmovdqu32 3(%%rdi), %%ymm0%{%%k1%}%{z%}")                                                        \
    X(0x0002, 304, 308, "vmovdqu32 300(%%rdi), %%ymm0%{%%k1%}%{z%}")                                                   \
    X(0x0004, 8, 12, "vaddps (%%rdi), %%ymm1, %%ymm0%{%%k1%}")                                                         \
    X(0x0004, 8, 12, "vpandd (%%rdi), %%ymm1, %%ymm0%{%%k1%}")                                                         \
    X(0x0030, 4, 6, "vpcmpub $4, (%%rdi), %%ymm1, %%k2%{%%k1%}")                                                       \
    X(0x0030, 8, 12, "vpcmpuw $4, (%%rdi), %%ymm1, %%k2%{%%k1%}")                                                      \
    X(0x0030, 16, 24, "vpcmpd $4, (%%rdi), %%ymm1, %%k2%{%%k1%}")                                                      \
    X(0x0030, 4, 6, "vpcmpeqb (%%rdi), %%ymm1, %%k2%{%%k1%}")                                                          \
    X(0x0004, 16, 24, "vpcmpeqq (%%rdi), %%ymm1, %%k2%{%%k1%}")                                                        \
    X(0x0030, 16, 24, "vcmpps $4, (%%rdi), %%ymm1, %%k2%{%%k1%}")                                                      \
    X(0x0030, 4, 6, "vptestnmb (%%rdi), %%ymm1, %%k2%{%%k1%}")                                                         \
    X(0x0030, 16, 24, "vptestmd (%%rdi), %%ymm1, %%k2%{%%k1%}")                                                        \
    X(0x00f0, 0, 16, "vpexpandd (%%rdi), %%ymm0%{%%k1%}%{z%}")                                                         \
    X(0x0050, 8, 16, "vpcompressd %%ymm0, 8(%%rdi)%{%%k1%}")                                                           \
    X(0x0050, 8, 24, "vexpandpd 8(%%rdi), %%zmm0%{%%k1%}")

#define WITH_VECTORS(X)                                                                                                \
    X(0x06, 4, 12, "vpmaskmovd (%%rdi), %%ymm2, %%ymm0")                                                               \
    X(0x81, 0, 32, "vpmaskmovd (%%rdi), %%ymm10, %%ymm0")                                                              \
    X(0x04, 16, 24, "vpmaskmovq %%ymm0, %%ymm3, (%%rdi)")                                                              \
    X(0x08, 15, 19, "vmaskmovps 3(%%r9), %%xmm2, %%xmm0")                                                              \
    X(0x02, 24, 32, "vmaskmovpd %%ymm0, %%ymm3, (%%r9,%%r10,8)")

/* A call would change the registers, so none is between here and the instruction. */
#define PREPARE                                                                                                        \
    known = false, faults = 0, start = end = 0;                                                                        \
    mprotect(page, PAGE, PROT_NONE);                                                                                   \
    register char *r9 __asm__("r9") = page + MIDDLE;                                                                   \
    register uint64_t r10 __asm__("r10") = 2

#define FINISH(first, last, text)                                                                                      \
    if (!known || start != (uint64_t)page + MIDDLE + (first) || end != (uint64_t)page + MIDDLE + (last))               \
    printf("%s: %d, %ld to %ld\n", text, known, (long)(start - (uint64_t)page - MIDDLE),                               \
           (long)(end - (uint64_t)page - MIDDLE)),                                                                     \
        wrong++

#define BY_BITS(mask, first, last, text)                                                                               \
    {                                                                                                                  \
        PREPARE;                                                                                                       \
        __asm__ volatile("kmovd %2, %%k1; kmovd %2, %%k7;" text                                                        \
                         :                                                                                             \
                         : "D"(page + MIDDLE), "S"(2L), "r"(mask), "r"(r9), "r"(r10)                                   \
                         : "memory", "xmm0", "xmm16", "xmm17", "k1", "k2", "k7");                                      \
        FINISH(first, last, text);                                                                                     \
    }

#define BY_VECTOR(mask, first, last, text)                                                                             \
    {                                                                                                                  \
        int32_t four[8];                                                                                               \
        int64_t eight[4];                                                                                              \
        for (int i = 0; i < 8; i++)                                                                                    \
            four[i] = -((mask) >> i & 1), eight[i / 2] = -((mask) >> (i / 2) & 1);                                     \
        PREPARE;                                                                                                       \
        __asm__ volatile("vmovdqu %2, %%ymm2; vmovdqu %2, %%ymm10; vmovdqu %3, %%ymm3;" text                           \
                         :                                                                                             \
                         : "D"(page + MIDDLE), "S"(2L), "m"(four), "m"(eight), "r"(r9), "r"(r10)                       \
                         : "memory", "xmm0", "xmm2", "xmm3", "xmm10");                                                 \
        FINISH(first, last, text);                                                                                     \
    }

__attribute__((target("avx512f,avx512vl,avx512bw"))) static int by_bits(void)
{
    int wrong = 0;
    WITH_BITS(BY_BITS)
    return wrong;
}

__attribute__((target("avx2"))) static int by_vectors(void)
{
    int wrong = 0;
    WITH_VECTORS(BY_VECTOR)
    return wrong;
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sigaction(SIGSEGV, &action, NULL);
    int wrong = 0;
    if (__builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw"))
        wrong += by_bits();
    if (__builtin_cpu_supports("avx2"))
        wrong += by_vectors();
    return wrong;
}
