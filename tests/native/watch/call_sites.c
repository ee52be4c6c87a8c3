/* Makes system calls by several forms of code. In the handler of each (Syscall User Dispatch), a place for a jump is
 * looked for in front of the call. If there is one, what would be replaced is executed elsewhere, with registers that
 * hold something else. Says where the place or what the call is given differs. Exit status: how many do. */
#include <linux/prctl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "call_sites.h"

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif

enum { PAGE = 4096 };

volatile uint64_t variable = 0x1234567890;

/* X(how many bytes of code are in front of the call from the place on, or 0; the registers that these set, named as in
 * `places`; the code, of which 110 is getppid) */
#define CASES(X)                                                                                                       \
    X(5, "a", "mov $110, %%eax\n")                                                                                     \
    X(7, "a", "mov $110, %%rax\n")                                                                                     \
    X(6, "t", "mov $110, %%eax\n mov $7, %%r10d\n")                                                                    \
    X(5, "s", "mov $110, %%eax\n mov $7, %%esi\n")                                                                     \
    X(5, "s", "mov $110, %%eax\n add $0, %%esi\n mov $5, %%esi\n")                                                     \
    X(6, "8", "mov $110, %%eax\n add $0, %%esi\n mov $110, %%r8d\n")                                                   \
    X(12, "sta",                                                                                                       \
      "mov $110, %%r8d\n jmp 1f\n .p2align 4\n"                                                                        \
      "1: mov variable(%%rip), %%esi\n xor %%r10d, %%r10d\n mov %%r8d, %%eax\n")                                       \
    X(14, "9tda",                                                                                                      \
      "mov $110, %%ebx\n jmp 1f\n .p2align 4\n"                                                                        \
      "1: mov variable(%%rip), %%r9\n mov %%r9d, %%r10d\n xor %%edx, %%edx\n mov %%ebx, %%eax\n")                      \
    X(9, "8a", "mov $110, %%r8d\n mov %%r8d, %%eax\n")                                                                 \
    X(5, "9", "mov $110, %%eax\n mov 8(%%rsp), %%r9\n")                                                                \
    X(8, "s", "mov $110, %%eax\n mov 128(%%rsp), %%rsi\n")                                                             \
    X(0, "", "jmp 1f\n .p2align 4\n .skip 12\n 1: mov $110, %%eax\n")                                                  \
    X(0, "", "mov $110, %%eax\n add $0, %%esi\n")                                                                      \
    X(0, "", "mov $3, %%esi\n mov $3, %%r9d\n .p2align 4\n mov $110, %%eax\n mov %%esi, %%edx\n mov %%r9d, %%esi\n")   \
    X(0, "", "mov $109, %%eax\n inc %%eax\n")                                                                          \
    X(0, "", "mov $100, %%eax\n mov $110, %%al\n")                                                                     \
    X(0, "", "mov $110, %%eax\n xor %%r8d, %%r8d\n mov 8(%%rsp,%%r8), %%r9\n")                                         \
    X(0, "", "mov $110, %%eax\n mov %%rsp, %%rdi\n mov 128(%%rdi), %%r9\n")                                            \
    X(0, "", "mov $110, %%eax\n lea variable(%%rip), %%r9\n")

enum { PLACES = 6 };
static const int places[PLACES] = {REG_RDX, REG_RSI, REG_R8, REG_R9, REG_R10, REG_RAX};
static const char names[PLACES + 1] = "ds89ta";

static volatile char selector;
static uint8_t *page;
static uint32_t found;
static const char *set;
static greg_t before[PLACES];                      /* as the call gets them by the code */
__attribute__((used)) static greg_t after[PLACES]; /* as it leaves them, made elsewhere */

static void handle(int number, siginfo_t *info, void *opaque)
{
    static const uint8_t jump_to_next_word[] = {0xFF, 0x25, 0, 0, 0, 0};
    ucontext_t *context = opaque;
    greg_t *general = context->uc_mcontext.gregs;
    ffm_call_site site;
    (void)number, (void)info;
    selector = 0;
    for (int i = 0; i < PLACES; i++)
        before[i] = general[places[i]];
    const bool is_found = ffm_call_site_find(context, &site);
    general[REG_RIP] -= FFM_CALL_BYTES;
    const uint64_t call = (uint64_t)general[REG_RIP];
    if (!is_found)
        return;
    found = (uint32_t)(call - site.start);
    memcpy(page, site.code, site.bytes);
    memcpy(page + site.bytes, jump_to_next_word, sizeof jump_to_next_word);
    memcpy(page + site.bytes + sizeof jump_to_next_word, &call, sizeof call);
    for (int i = 0; i < PLACES; i++)
        if (strchr(set, names[i]) != NULL)
            general[places[i]] = 0x5555;
    general[REG_RIP] = (greg_t)page;
}

#define KEEP                                                                                                           \
    "mov %%rdx, after(%%rip)\n mov %%rsi, 8+after(%%rip)\n mov %%r8, 16+after(%%rip)\n mov %%r9, 24+after(%%rip)\n"    \
    "mov %%r10, 32+after(%%rip)\n"

#define MAKE(bytes, changed, code)                                                                                     \
    {                                                                                                                  \
        long answer;                                                                                                   \
        found = 0, set = changed;                                                                                      \
        selector = 1;                                                                                                  \
        __asm__ volatile(".p2align 4\n" code "syscall\n" KEEP                                                          \
                         : "=&a"(answer)                                                                               \
                         :                                                                                             \
                         : "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc");               \
        selector = 0;                                                                                                  \
        if (found != (bytes) || memcmp(before, after, (PLACES - 1) * sizeof *after) != 0 || answer != parent) {        \
            printf("%s: found %u, answer %ld\n", #bytes ": " code, found, answer);                                     \
            failed++;                                                                                                  \
        }                                                                                                              \
    }

int main(void)
{
    const struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_NODEFER};
    const long parent = getppid();
    int failed = 0;
    page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED || sigaction(SIGSYS, &action, NULL) != 0 ||
        prctl(PR_SET_SYSCALL_USER_DISPATCH, 1, 0, 0, &selector) != 0)
        return 100;
    CASES(MAKE)
    return failed;
}
