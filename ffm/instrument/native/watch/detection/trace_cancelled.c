#include "trace_cancelled.h"

#include <errno.h>
#include <gnu/libc-version.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "guarded.h"
#include "kernel.h"
#include "kernel_action.h"
#include "watched.h"

/* The signal, which glibc calls SIGCANCEL; programs cannot handle it. */
enum { CANCEL = 32 };

/* A system call's instruction. */
enum { CALL_BYTES = 2 };
static const uint8_t call_code[CALL_BYTES] = {0x0f, 0x05};

/* A signal that finds a thread elsewhere is sent again later, for at most a second. */
enum { LATER = 500000 /* ns */, MOST_TRIES = 2000 };

static ffm_signal_handler library; /* the C library's handler */
static const ffm_follower *threads;

/* Since version 2.41 it looks whether the place is in one of its calls that may be cancelled. Before, it made
 * cancellation asynchronous around each of them. */
static bool by_place;

static __thread struct {
    uint64_t instruction, stack; /* of the last system call, in the program's own code */
    int32_t timer;               /* the kernel's number of it */
    uint32_t tries;              /* 0 while no signal is to come again */
} here __attribute__((tls_model("initial-exec")));

static bool is_call(uint64_t address)
{
    uint8_t code[CALL_BYTES];
    return ffm_guarded_read(code, address, sizeof code) && memcmp(code, call_code, sizeof code) == 0;
}

/* The place in the program's code where a signal found this thread: at a system call that will be made again, or behind
 * it. 0 if the signal came elsewhere. */
static uint64_t place_of(const greg_t *registers)
{
    const uint64_t found = (uint64_t)registers[REG_RIP];
    if (here.instruction == 0 || (uint64_t)registers[REG_RSP] != here.stack)
        return 0;
    if (is_call(found - CALL_BYTES))
        return here.instruction + CALL_BYTES;
    return is_call(found) ? here.instruction : 0;
}

static bool come_again(void)
{
    if (here.tries == 0) {
        struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = CANCEL};
        event._sigev_un._tid = (int)ffm_kernel(SYS_gettid, 0, 0, 0, 0);
        if (ffm_kernel(SYS_timer_create, CLOCK_MONOTONIC, (uint64_t)&event, (uint64_t)&here.timer, 0) != 0)
            return false;
    }
    const struct itimerspec later = {.it_value = {.tv_nsec = LATER}};
    return here.tries++ < MOST_TRIES &&
           ffm_kernel(SYS_timer_settime, (uint64_t)here.timer, 0, (uint64_t)&later, 0) == 0;
}

static void come_no_more(void)
{
    if (here.tries != 0)
        ffm_kernel(SYS_timer_delete, (uint64_t)here.timer, 0, 0, 0);
    here.tries = 0;
}

/* The kernel's description of the signal; a timer's differs, and the C library takes no signal but that of a thread. */
static siginfo_t description(void)
{
    siginfo_t info = {.si_signo = CANCEL, .si_code = SI_TKILL};
    info.si_pid = (pid_t)ffm_kernel(SYS_getpid, 0, 0, 0, 0);
    info.si_uid = (uid_t)ffm_kernel(SYS_getuid, 0, 0, 0, 0);
    return info;
}

/* The C library unwinds from here, or returns if the thread is not to be cancelled at this place. If it surely unwinds,
 * the handler and what it unwinds are followed. Frida's own code, which makes calls at which a thread is cancelled,
 * must not be cancelled meanwhile. */
static void cancelled_at(uint64_t place, ffm_signal_handler original, siginfo_t *info, ucontext_t *context)
{
    greg_t *rip = &context->uc_mcontext.gregs[REG_RIP];
    const greg_t found = *rip;
    int state, type, ignored;
    *rip = (greg_t)place;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
    const bool surely = state == PTHREAD_CANCEL_ENABLE && type == PTHREAD_CANCEL_ASYNCHRONOUS;
    if (surely)
        threads->again();
    else if (state == PTHREAD_CANCEL_ENABLE && by_place)
        ffm_watch_lose();
    pthread_setcanceltype(type, &ignored);
    pthread_setcancelstate(state, &ignored);
    original(CANCEL, info, context);
    if (surely)
        ffm_watch_lose(); /* cancelled twice; it goes on, in its own code */
    else
        *rip = found;
}

static void handle(int number, siginfo_t *given, void *context)
{
    const ffm_signal_handler original = __atomic_load_n(&library, __ATOMIC_ACQUIRE);
    if (!threads->followed()) {
        original(number, given, context);
        return;
    }
    const int error = errno;
    const uint64_t place = place_of(((ucontext_t *)context)->uc_mcontext.gregs);
    if (place == 0 && come_again()) {
        errno = error;
        return;
    }
    come_no_more();
    siginfo_t info = description();
    if (place != 0) {
        cancelled_at(place, original, &info, context);
    } else { /* code that makes no system call: the thread ends without its clean-up */
        ffm_watch_lose();
        original(number, &info, context);
    }
    errno = error;
}

void ffm_trace_cancelled_open(const ffm_follower *follower)
{
    ffm_signal_action action = {0};
    threads = follower;
    by_place = strverscmp(gnu_get_libc_version(), "2.41") >= 0;
    if (library != NULL || ffm_kernel(SYS_rt_sigaction, CANCEL, 0, (uint64_t)&action, sizeof action.mask) != 0 ||
        action.handler <= 1)
        return;
    __atomic_store_n(&library, (ffm_signal_handler)(uintptr_t)action.handler, __ATOMIC_RELEASE);
    action.handler = (uint64_t)(uintptr_t)handle;
    ffm_kernel(SYS_rt_sigaction, CANCEL, (uint64_t)&action, 0, sizeof action.mask);
}

void ffm_trace_cancelled_before(uint64_t instruction, uint64_t stack, uint64_t number, const uint64_t *arguments)
{
    here.stack = stack;
    here.instruction = instruction;
    if (number != SYS_rt_sigaction || arguments[0] != CANCEL || arguments[1] == 0)
        return;
    ffm_signal_action *action = (ffm_signal_action *)arguments[1]; /* the C library's own */
    if (action->handler <= 1 || action->handler == (uint64_t)(uintptr_t)handle)
        return;
    __atomic_store_n(&library, (ffm_signal_handler)(uintptr_t)action->handler, __ATOMIC_RELEASE);
    action->handler = (uint64_t)(uintptr_t)handle;
}
