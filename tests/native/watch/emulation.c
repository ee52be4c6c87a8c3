/* Executes instructions twice, by the CPU and, on a page that may not be touched, by the collector's emulation; says
 * where registers, flags or memory differ. Exit status: how many do, or were not emulated. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "emulation.h"

typedef struct {
    uint64_t rax, rcx, rdx, rbx, r9, flags;
    unsigned char xmm0[16], xmm9[16];
} state;

enum { PAGE = 4096, OPERANDS = 256, FLAGS = 0x8D5, ADJUST = 16 };

#define CASES(X)                                                                                                       \
    X(0, "mov (%%rdi), %%al")                                                                                          \
    X(1, "mov (%%rdi), %%ah")                                                                                          \
    X(2, "mov (%%rdi), %%r9b")                                                                                         \
    X(3, "mov (%%rdi), %%ax")                                                                                          \
    X(4, "mov (%%rdi), %%eax")                                                                                         \
    X(5, "mov (%%rdi), %%rax")                                                                                         \
    X(6, "mov 8(%%rdi), %%r9")                                                                                         \
    X(7, "mov -8(%%rdi,%%r8,4), %%rcx")                                                                                \
    X(8, "mov 128(%%rdi,%%r8), %%ecx")                                                                                 \
    X(9, "mov (%%r10), %%r9d")                                                                                         \
    X(10, "mov (%%r12), %%rax")                                                                                        \
    X(11, "mov 0(%%r13), %%rax")                                                                                       \
    X(12, "mov %%al, (%%rdi)")                                                                                         \
    X(13, "mov %%bh, 3(%%rdi)")                                                                                        \
    X(14, "mov %%r9b, (%%rdi)")                                                                                        \
    X(15, "mov %%cx, 1(%%rdi)")                                                                                        \
    X(16, "mov %%edx, (%%rdi)")                                                                                        \
    X(17, "mov %%r9, 16(%%rdi)")                                                                                       \
    X(18, "movb $-3, (%%rdi)")                                                                                         \
    X(19, "movw $0x1234, (%%rdi)")                                                                                     \
    X(20, "movl $-5, (%%rdi)")                                                                                         \
    X(21, "movq $-5, (%%rdi)")                                                                                         \
    X(22, "movzbl (%%rdi), %%eax")                                                                                     \
    X(23, "movzbw 5(%%rdi), %%ax")                                                                                     \
    X(24, "movzwl (%%rdi), %%eax")                                                                                     \
    X(25, "movsbq (%%rdi), %%rax")                                                                                     \
    X(26, "movsbl 1(%%rdi), %%ecx")                                                                                    \
    X(27, "movswq (%%rdi), %%rdx")                                                                                     \
    X(28, "movslq 4(%%rdi), %%rax")                                                                                    \
    X(29, "add %%rax, (%%rdi)")                                                                                        \
    X(30, "add (%%rdi), %%eax")                                                                                        \
    X(31, "add %%cl, 7(%%rdi)")                                                                                        \
    X(32, "addl $1, (%%rdi)")                                                                                          \
    X(33, "addq $-1, (%%rdi)")                                                                                         \
    X(34, "addw $0x7fff, (%%rdi)")                                                                                     \
    X(35, "sub %%rcx, (%%rdi)")                                                                                        \
    X(36, "sub 8(%%rdi), %%rbx")                                                                                       \
    X(37, "subb $0x80, (%%rdi)")                                                                                       \
    X(38, "and %%edx, (%%rdi)")                                                                                        \
    X(39, "andq $-16, (%%rdi)")                                                                                        \
    X(40, "or (%%rdi), %%r9")                                                                                          \
    X(41, "orl $0x80000000, (%%rdi)")                                                                                  \
    X(42, "xor %%ax, (%%rdi)")                                                                                         \
    X(43, "xor (%%rdi), %%ah")                                                                                         \
    X(44, "cmp %%rax, (%%rdi)")                                                                                        \
    X(45, "cmp (%%rdi), %%rax")                                                                                        \
    X(46, "cmp (%%rdi), %%ecx")                                                                                        \
    X(47, "cmpb $1, 9(%%rdi)")                                                                                         \
    X(48, "cmpl $0x7fffffff, (%%rdi)")                                                                                 \
    X(49, "cmpq $-1, 24(%%rdi)")                                                                                       \
    X(50, "test %%al, (%%rdi)")                                                                                        \
    X(51, "test %%rdx, (%%rdi)")                                                                                       \
    X(52, "incl (%%rdi)")                                                                                              \
    X(53, "incb 24(%%rdi)")                                                                                            \
    X(54, "incq 24(%%rdi)")                                                                                            \
    X(55, "decq 32(%%rdi)")                                                                                            \
    X(56, "decw 32(%%rdi)")                                                                                            \
    X(57, "movss (%%rdi), %%xmm0")                                                                                     \
    X(58, "movsd 8(%%rdi), %%xmm9")                                                                                    \
    X(59, "movss %%xmm9, 4(%%rdi)")                                                                                    \
    X(60, "movsd %%xmm0, (%%rdi)")                                                                                     \
    X(61, "movups 1(%%rdi), %%xmm0")                                                                                   \
    X(62, "movups %%xmm9, 3(%%rdi)")                                                                                   \
    X(63, "movaps (%%rdi), %%xmm9")                                                                                    \
    X(64, "movaps %%xmm0, 16(%%rdi)")                                                                                  \
    X(65, "movdqa (%%rdi), %%xmm0")                                                                                    \
    X(66, "movdqu 5(%%rdi), %%xmm9")                                                                                   \
    X(67, "movdqu %%xmm0, 5(%%rdi)")                                                                                   \
    X(68, "movq (%%rdi), %%xmm0")                                                                                      \
    X(69, "movq %%xmm9, (%%rdi)")                                                                                      \
    X(70, "xchg %%ecx, (%%rdi)")                                                                                       \
    X(71, "xchg %%ah, 3(%%rdi)")                                                                                       \
    X(72, "xchg %%r9, 8(%%rdi)")                                                                                       \
    X(73, "lock addl $1, (%%rdi)")                                                                                     \
    X(74, "lock sub %%rcx, 8(%%rdi)")                                                                                  \
    X(75, "lock orw $0x101, 2(%%rdi)")                                                                                 \
    X(76, "lock xorb %%dl, 5(%%rdi)")                                                                                  \
    X(77, "lock andl $-8, (%%rdi)")                                                                                    \
    X(78, "lock incl 4(%%rdi)")                                                                                        \
    X(79, "lock decq 16(%%rdi)")                                                                                       \
    X(80, "xadd %%ecx, (%%rdi)")                                                                                       \
    X(81, "lock xadd %%rdx, 8(%%rdi)")                                                                                 \
    X(82, "lock xadd %%bl, 3(%%rdi)")                                                                                  \
    X(83, "cmpxchg %%ecx, (%%rdi)")                                                                                    \
    X(84, "lock cmpxchg %%rdx, (%%rdi)")                                                                               \
    X(85, "lock cmpxchg %%cl, 1(%%rdi)")                                                                               \
    X(86, "lock cmpxchg %%dx, (%%rdi)")                                                                                \
    X(87, "addss (%%rdi), %%xmm0")                                                                                     \
    X(88, "addsd 8(%%rdi), %%xmm9")                                                                                    \
    X(89, "mulss 4(%%rdi), %%xmm9")                                                                                    \
    X(90, "mulsd (%%rdi), %%xmm0")                                                                                     \
    X(91, "subss (%%rdi), %%xmm0")                                                                                     \
    X(92, "subsd 8(%%rdi), %%xmm9")                                                                                    \
    X(93, "divss 4(%%rdi), %%xmm0")                                                                                    \
    X(94, "divsd (%%rdi), %%xmm9")                                                                                     \
    X(95, "minss (%%rdi), %%xmm0")                                                                                     \
    X(96, "maxsd (%%rdi), %%xmm9")                                                                                     \
    X(97, "sqrtss (%%rdi), %%xmm0")                                                                                    \
    X(98, "sqrtsd 8(%%rdi), %%xmm9")                                                                                   \
    X(99, "addps (%%rdi), %%xmm0")                                                                                     \
    X(100, "mulpd 16(%%rdi), %%xmm9")                                                                                  \
    X(101, "ucomiss (%%rdi), %%xmm0")                                                                                  \
    X(102, "ucomisd 8(%%rdi), %%xmm9")                                                                                 \
    X(103, "comiss 4(%%rdi), %%xmm9")                                                                                  \
    X(104, "comisd (%%rdi), %%xmm0")

/* Each case is in its own place; r8, r10, r12 and r13 are addresses, and stay. */
#define RUN(number, text)                                                                                              \
    static void run_##number(state *s, void *memory)                                                                   \
    {                                                                                                                  \
        __asm__ volatile("mov $4, %%r8\n mov %%rdi, %%r10\n mov %%rdi, %%r12\n mov %%rdi, %%r13\n"                     \
                         "movdqu 48(%%rsi), %%xmm0\n movdqu 64(%%rsi), %%xmm9\n"                                       \
                         "mov 8(%%rsi), %%rcx\n mov 16(%%rsi), %%rdx\n mov 24(%%rsi), %%rbx\n mov 32(%%rsi), %%r9\n"   \
                         "pushq 40(%%rsi)\n popfq\n mov (%%rsi), %%rax\n" text "\n"                                    \
                         "pushfq\n popq 40(%%rsi)\n mov %%rax, (%%rsi)\n mov %%rcx, 8(%%rsi)\n mov %%rdx, 16(%%rsi)\n" \
                         "mov %%rbx, 24(%%rsi)\n mov %%r9, 32(%%rsi)\n"                                                \
                         "movdqu %%xmm0, 48(%%rsi)\n movdqu %%xmm9, 64(%%rsi)\n"                                       \
                         : "+S"(s), "+D"(memory)::"rax", "rcx", "rdx", "rbx", "r8", "r9", "r10", "r12", "r13", "xmm0", \
                           "xmm9", "memory", "cc");                                                                    \
    }

CASES(RUN)

#define ROW(number, text) {text, run_##number},
static const struct {
    const char *text;
    void (*run)(state *, void *);
} cases[] = {CASES(ROW)};

static unsigned emulations;

/* Logical operations leave the adjust flag undefined. */
static uint64_t flags_of(const char *text)
{
    static const char *const logical[] = {"and", "or", "xor", "test", "lock and", "lock or", "lock xor"};
    for (unsigned i = 0; i < sizeof logical / sizeof logical[0]; i++)
        if (strncmp(text, logical[i], strlen(logical[i])) == 0)
            return FLAGS & ~ADJUST;
    return FLAGS;
}

static void on_fault(int number, siginfo_t *info, void *opaque)
{
    ffm_decoded instruction;
    void *page = (void *)((uint64_t)info->si_addr & ~(uint64_t)(PAGE - 1));
    (void)number;
    mprotect(page, PAGE, PROT_READ | PROT_WRITE);
    if (!ffm_decode(opaque, &instruction))
        return; /* the CPU does it */
    ffm_emulation_execute(&instruction, opaque);
    emulations++;
    mprotect(page, PAGE, PROT_NONE);
}

/* Operands at the edges of signed and unsigned numbers, and between. */
static void fill(state *s, unsigned char *memory, unsigned turn)
{
    static const uint64_t values[] = {0,
                                      1,
                                      0x7F,
                                      0x80,
                                      0x7FFF7FFF7FFF7FFF,
                                      0x8000800080008000,
                                      0xFFFFFFFFFFFFFFFF,
                                      0x0123456789ABCDEF,
                                      0x7FFFFFFFFFFFFFFF,
                                      0x8000000000000000,
                                      0x80000000};
    enum { VALUES = sizeof values / sizeof values[0] };
    *s = (state){.rax = values[turn % VALUES],
                 .rcx = values[(turn + 3) % VALUES],
                 .rdx = values[(turn + 5) % VALUES],
                 .rbx = values[(turn + 7) % VALUES],
                 .r9 = values[(turn / VALUES + 2) % VALUES],
                 .flags = turn & 1 ? 0x8D5 : 0};
    for (int i = 0; i < OPERANDS / 8; i++)
        memcpy(memory + 8 * i, &values[(turn / VALUES + (unsigned)i) % VALUES], 8);
    for (int i = 0; i < 16; i++) {
        s->xmm0[i] = (unsigned char)(turn + 17 * i);
        s->xmm9[i] = (unsigned char)(turn * 3 + 29 * i);
    }
}

int main(void)
{
    unsigned char *plain = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned char *watched = plain + PAGE;
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    int wrong = 0;
    sigaction(SIGSEGV, &action, NULL);
    for (unsigned number = 0; number < sizeof cases / sizeof cases[0]; number++) {
        const unsigned before = emulations;
        unsigned turns = 0;
        for (; turns < 121; turns++) {
            state by_cpu, emulated;
            fill(&by_cpu, plain, turns);
            cases[number].run(&by_cpu, plain);
            fill(&emulated, watched, turns);
            mprotect(watched, PAGE, PROT_NONE);
            cases[number].run(&emulated, watched);
            mprotect(watched, PAGE, PROT_READ | PROT_WRITE);
            by_cpu.flags &= flags_of(cases[number].text);
            emulated.flags &= flags_of(cases[number].text);
            if (memcmp(&by_cpu, &emulated, sizeof by_cpu) != 0 || memcmp(plain, watched, OPERANDS) != 0) {
                printf("%s differs in turn %u: flags %lx, by the CPU %lx\n", cases[number].text, turns, emulated.flags,
                       by_cpu.flags);
                wrong++;
                break;
            }
        }
        if (emulations - before < turns) {
            printf("%s is not emulated\n", cases[number].text);
            wrong++;
        }
    }
    return wrong;
}
