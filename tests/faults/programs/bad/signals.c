/* Stacks of their own, and handlers of signals. */
#define _GNU_SOURCE
#include "bad.h"

#include <setjmp.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>

THING(small_thread_stack)
{
    pthread_attr_t how;
    pthread_attr_init(&how);
    pthread_attr_setstacksize(&how, 64 << 10);
    run_thread(use, &how);
}
THING(tiny_thread_stack)
{
    pthread_attr_t how;
    pthread_attr_init(&how);
    pthread_attr_setstacksize(&how, PTHREAD_STACK_MIN);
    run_thread(use, &how);
}
static ucontext_t here, there;
THING(coroutine)
{
    static char stack[128 << 10];
    getcontext(&there);
    there.uc_stack.ss_sp = stack;
    there.uc_stack.ss_size = sizeof stack;
    there.uc_link = &here;
    makecontext(&there, use_gpu, 0);
    swapcontext(&here, &there);
}
void handler_says(int number)
{
    (void)number;
    say("handled\n");
}
static void handler_uses(int number)
{
    (void)number;
    use_gpu();
}
static volatile int counted;
static void handler_counts(int number)
{
    (void)number;
    counted++;
}
void handle(int number, void (*how)(int), int flags)
{
    struct sigaction action = {.sa_handler = how, .sa_flags = flags};
    sigaction(number, &action, NULL);
}
THING(other_stack)
{
    static char stack[64 << 10];
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
    handle(SIGUSR1, handler_uses, SA_ONSTACK);
    raise(SIGUSR1);
}
THING(driver_in_handler)
{
    handle(SIGUSR1, handler_uses, 0);
    raise(SIGUSR1);
}
THING(blocks_all)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
}
THING(blocks_all_raw)
{
    unsigned long all = ~0ul;
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, NULL, sizeof all);
}
THING(ignores_all)
{
    for (int number = 1; number < 32; number++)
        signal(number, SIG_IGN);
}
THING(defaults_all)
{
    for (int number = 1; number < 32; number++)
        signal(number, SIG_DFL);
}
THING(handles_all)
{
    for (int number = 1; number < 65; number++)
        handle(number, handler_says, 0);
    raise(SIGTERM);
}
static sigjmp_buf back;
static void jumps_back(int number)
{
    (void)number;
    siglongjmp(back, 1);
}
static void recovers_from(int number, void (*what)(void))
{
    handle(number, jumps_back, 0);
    if (sigsetjmp(back, 1) == 0)
        what();
    say("recovered\n");
    signal(number, SIG_DFL);
}
THING(recovers_segv)
{
    recovers_from(SIGSEGV, null);
}
THING(recovers_bus)
{
    recovers_from(SIGBUS, beyond_file);
}
THING(recovers_fpe)
{
    recovers_from(SIGFPE, division);
}
THING(recovers_ill)
{
    recovers_from(SIGILL, illegal);
}
THING(recovers_abort)
{
    recovers_from(SIGABRT, late_abort);
}
THING(own_trap)
{
    handle(SIGTRAP, handler_says, 0);
    breakpoint();
}
THING(own_sys)
{
    handle(SIGSYS, handler_says, 0);
    raise(SIGSYS);
}
static volatile char dispatched; /* SYSCALL_DISPATCH_FILTER_… of linux/prctl.h */
static void answers_call(int number, siginfo_t *info, void *context)
{
    (void)number;
    dispatched = 0;
    say(info->si_syscall == SYS_getppid ? "dispatched\n" : "another call\n");
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RAX] = 0;
}
THING(own_dispatch)
{
    const struct sigaction action = {.sa_sigaction = answers_call, .sa_flags = SA_SIGINFO};
    sigaction(SIGSYS, &action, NULL);
    prctl(59 /* PR_SET_SYSCALL_USER_DISPATCH */, 1, 0, 0, &dispatched);
    dispatched = 1;
    say(syscall(SYS_getppid) == 0 ? "answered\n" : "made\n");
}
THING(keeps_own_segv)
{
    handle(SIGSEGV, jumps_back, SA_NODEFER);
}
THING(own_segv_once)
{
    handle(SIGSEGV, handler_says, SA_RESETHAND);
    null();
}
THING(own_segv_raw)
{
    struct {
        void (*handler)(int);
        unsigned long flags;
        void *restorer;
        unsigned long mask;
    } action = {(void (*)(int))1 /* SIG_IGN */, 0, NULL, 0};
    syscall(SYS_rt_sigaction, SIGSEGV, &action, NULL, 8);
}
static void timer(int which, int number, int microseconds)
{
    handle(number, handler_counts, SA_RESTART);
    const struct itimerval every = {{0, microseconds}, {0, microseconds}};
    setitimer(which, &every, NULL);
}
THING(real_timer)
{
    timer(ITIMER_REAL, SIGALRM, 500);
}
THING(profiling_timer)
{
    timer(ITIMER_PROF, SIGPROF, 1000);
}
THING(interrupting_timer)
{
    real_timer();
    handle(SIGALRM, handler_counts, 0);
}
THING(alarm_later)
{
    alarm(1000);
}
THING(reads_signals)
{
    sigset_t set;
    struct signalfd_siginfo told;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    const int file = signalfd(-1, &set, 0);
    raise(SIGUSR1);
    if (read(file, &told, sizeof told) == sizeof told)
        printf("signal %u\n", told.ssi_signo);
}
THING(stops)
{
    const pid_t self = getpid();
    const pid_t child = fork();
    if (child == 0) {
        usleep(50000);
        kill(self, SIGCONT);
        _exit(0);
    }
    raise(SIGSTOP);
    await_child(child);
}
