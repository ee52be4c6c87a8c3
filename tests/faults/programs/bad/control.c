/* Settings by prctl, filters of system calls, tracing. */
#define _GNU_SOURCE
#include "bad.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

THING(no_new_privileges)
{
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}
THING(not_dumpable)
{
    prctl(PR_SET_DUMPABLE, 0);
}
THING(renamed)
{
    prctl(PR_SET_NAME, ") R 0 (", 0, 0, 0);
}
THING(dies_with_parent)
{
    prctl(PR_SET_PDEATHSIG, SIGTERM);
}
THING(lives_without_parent)
{
    prctl(PR_SET_PDEATHSIG, 0);
}
THING(subreaper)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    double_fork();
}
THING(no_timestamps)
{
    prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
    prctl(PR_SET_TSC, PR_TSC_ENABLE);
}
THING(no_huge_pages)
{
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
}
/* Strict mode forbids exit_group, so that only a process with one thread can end: a child. */
static void end_strictly(void)
{
    say("strict\n");
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
    syscall(SYS_exit, 0);
}
THING(strict)
{
    in_child(end_strictly);
}
static void answer_call(int number, unsigned answer)
{
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, answer),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {.len = sizeof steps / sizeof *steps, .filter = steps};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}
THING(no_ptrace)
{
    answer_call(SYS_ptrace, SECCOMP_RET_ERRNO | EPERM);
}
THING(no_opening)
{
    answer_call(SYS_openat, SECCOMP_RET_ERRNO | EPERM);
}
THING(no_allocation)
{
    answer_call(SYS_fallocate, SECCOMP_RET_ERRNO | EPERM);
}
THING(kills_allocation)
{
    answer_call(SYS_fallocate, SECCOMP_RET_KILL_PROCESS);
}
THING(no_advice)
{
    answer_call(SYS_madvise, SECCOMP_RET_ERRNO | ENOSYS);
}
THING(no_prctl)
{
    answer_call(SYS_prctl, SECCOMP_RET_ERRNO | EPERM);
}
THING(traps_a_call)
{
    handle(SIGSYS, handler_says, 0);
    answer_call(SYS_getppid, SECCOMP_RET_TRAP);
    syscall(SYS_getppid);
}
THING(traced_by_parent)
{
    ptrace(PTRACE_TRACEME, 0, NULL, NULL);
}
THING(traces_child)
{
    int status;
    const pid_t child = fork();
    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        raise(SIGSTOP);
        _exit(0);
    }
    waitpid(child, &status, 0);
    ptrace(PTRACE_CONT, child, NULL, NULL);
    await_child(child);
}
THING(traced_by_child)
{
    const pid_t self = getpid();
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    const pid_t child = fork();
    if (child == 0) {
        if (ptrace(PTRACE_ATTACH, self, NULL, NULL) == 0) {
            waitpid(self, NULL, 0);
            ptrace(PTRACE_DETACH, self, NULL, NULL);
        }
        _exit(0);
    }
    await_child(child);
}
