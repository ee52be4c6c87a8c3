#include "blocked_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "kernel.h"

#ifndef SYS_epoll_pwait2 /* Linux 5.11 */
#define SYS_epoll_pwait2 441
#endif
#ifndef SYS_futex_waitv /* Linux 5.16 */
#define SYS_futex_waitv 449
#endif

enum { CALL_BYTES = 2 }; /* of the instruction `syscall` */

/* Read the start of a file in /proc about a thread; the text is empty if that fails. */
static void read_about(pid_t thread, const char *file, char *text, size_t room)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/%s", (int)thread, file);
    *text = '\0';
    const int64_t opened = ffm_kernel(SYS_openat, (uint64_t)AT_FDCWD, (uint64_t)path, O_RDONLY | O_CLOEXEC, 0);
    if (opened < 0)
        return;
    const int64_t bytes = ffm_kernel(SYS_read, (uint64_t)opened, (uint64_t)text, room - 1, 0);
    text[bytes > 0 ? bytes : 0] = '\0';
    ffm_kernel(SYS_close, (uint64_t)opened, 0, 0, 0);
}

ffm_blocked_call ffm_blocked_call_of(pid_t thread)
{
    enum { WORDS = 9 };
    char text[256], *at = text;
    uint64_t words[WORDS];
    read_about(thread, "syscall", text, sizeof text);
    for (int i = 0; i < WORDS; i++) {
        char *start = at;
        words[i] = strtoul(start, &at, 0);
        if (at == start || *start == '-') /* it runs, or is blocked elsewhere */
            return (ffm_blocked_call){0};
    }
    ffm_blocked_call call = {.number = words[0], .stack = words[7], .behind = words[8]};
    memcpy(call.arguments, words + 1, sizeof call.arguments);
    return call;
}

bool ffm_blocked_call_only_waits(uint64_t number)
{
    switch (number) {
    case SYS_futex:
    case SYS_futex_waitv:
    case SYS_poll:
    case SYS_ppoll:
    case SYS_select:
    case SYS_pselect6:
    case SYS_epoll_wait:
    case SYS_epoll_pwait:
    case SYS_epoll_pwait2:
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
        return true;
    default:
        return false;
    }
}

bool ffm_blocked_call_may_sleep(uint64_t number, const uint64_t *arguments)
{
    switch (number) {
    case SYS_futex: {
        const uint64_t command = arguments[1] & FUTEX_CMD_MASK;
        return command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET;
    }
    case SYS_futex_waitv:
        return false;
    case SYS_pause:
    case SYS_rt_sigsuspend:
    case SYS_rt_sigtimedwait:
    case SYS_wait4:
    case SYS_waitid:
    case SYS_read:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_accept:
    case SYS_accept4:
        return true;
    default:
        return ffm_blocked_call_only_waits(number);
    }
}

/* Read memory of a thread that continues to run meanwhile. */
static bool read_word(uint64_t address, uint64_t *word)
{
    const struct iovec here = {word, sizeof *word}, there = {(void *)address, sizeof *word};
    const uint64_t arguments[6] = {(uint64_t)getpid(), (uint64_t)&here, 1, (uint64_t)&there, 1, 0};
    return ffm_kernel_call(SYS_process_vm_readv, arguments) == sizeof *word;
}

enum { STATUS = 4096 };

static uint64_t number_in(const char *status, const char *name, int base)
{
    const char *line = strstr(status, name);
    return line == NULL ? 0 : strtoul(line + strlen(name), NULL, base);
}

/* While a thread waits for signals, they are not among those that it blocks: its status and its call must be of the
 * same moment. It has not been woken if it has not slept again, and has the same signals blocked as before. */
bool ffm_blocked_awaits(pid_t thread, int signal, ffm_blocked_call *call)
{
    static const char *blocked = "\nSigBlk:", *sleeps = "\nvoluntary_ctxt_switches:";
    const uint64_t wanted = 1ULL << (signal - 1);
    char before[STATUS], after[STATUS];
    uint64_t set;
    read_about(thread, "status", before, sizeof before);
    *call = ffm_blocked_call_of(thread);
    read_about(thread, "status", after, sizeof after);
    if (call->behind != 0 && call->number == SYS_rt_sigtimedwait &&
        (!read_word(call->arguments[0], &set) || set & wanted))
        return true;
    return ((number_in(before, blocked, 16) | number_in(after, blocked, 16)) & wanted) != 0 ||
           number_in(before, sleeps, 10) != number_in(after, sleeps, 10);
}

void ffm_blocked_call_again(const ffm_blocked_call *call, ucontext_t *interrupted)
{
    static const int places[6] = {REG_RDI, REG_RSI, REG_RDX, REG_R10, REG_R8, REG_R9};
    greg_t *registers = interrupted->uc_mcontext.gregs;
    if (registers[REG_RAX] != -EINTR || call->behind != (uint64_t)registers[REG_RIP] ||
        call->stack != (uint64_t)registers[REG_RSP])
        return;
    for (int i = 0; i < 6; i++)
        if (call->arguments[i] != (uint64_t)registers[places[i]])
            return;
    registers[REG_RAX] = (greg_t)call->number;
    registers[REG_RIP] -= CALL_BYTES;
}
