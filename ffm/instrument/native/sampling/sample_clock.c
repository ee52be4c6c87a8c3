#include "sample_clock.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "kernel.h"

enum { PAGE = 4096, MILLISECOND = 1000 * 1000 };

/* Since Linux 5.11 on x86-64, a timer's signal is sent when the thread returns from the kernel, so that it interrupts
 * no system call (CONFIG_POSIX_CPU_TIMERS_TASK_WORK). */
static bool timer_interrupts_nothing(void)
{
    struct utsname told;
    unsigned version = 0, patch = 0;
    return uname(&told) == 0 && sscanf(told.release, "%u.%u", &version, &patch) == 2 &&
           (version > 5 || (version == 5 && patch >= 11));
}

/* A timer looks at the thread's time at each tick of the kernel only: every 1 to 10 milliseconds. */
static uint32_t timer_period(void)
{
    struct timespec tick = {.tv_nsec = FFM_SAMPLE_EVENT_PERIOD};
    clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
    return (uint32_t)(tick.tv_nsec < MILLISECOND ? MILLISECOND : tick.tv_nsec);
}

/* The kernel's number for the clock of a thread's processor time (clock_getcpuclockid(3) for one of a process). */
static clockid_t clock_of(pid_t thread)
{
    enum { PER_THREAD = 4, SCHEDULED = 2, BITS = 3 };
    return (clockid_t)((~(uint32_t)thread << BITS) | PER_THREAD | SCHEDULED);
}

static int open_event(pid_t thread)
{
    const struct perf_event_attr wanted = {
        .type = PERF_TYPE_SOFTWARE,
        .config = PERF_COUNT_SW_CPU_CLOCK,
        .size = sizeof wanted,
        .sample_period = FFM_SAMPLE_EVENT_PERIOD,
        .wakeup_events = 1,
        .disabled = 1,
        .exclude_kernel = 1,
        .exclude_hv = 1,
    };
    const uint64_t arguments[6] = {(uint64_t)&wanted, (uint64_t)thread,     UINT64_MAX,
                                   UINT64_MAX,        PERF_FLAG_FD_CLOEXEC, 0};
    return (int)ffm_kernel_call(SYS_perf_event_open, arguments);
}

static int64_t control(int file, uint64_t command, uint64_t argument)
{
    return ffm_kernel(SYS_fcntl, (uint64_t)file, command, argument, 0);
}

static bool sends_signals(int file, pid_t thread)
{
    const struct f_owner_ex owner = {F_OWNER_TID, thread};
    return control(file, F_SETOWN_EX, (uint64_t)&owner) == 0 && control(file, F_SETSIG, FFM_SAMPLE_SIGNAL) == 0 &&
           control(file, F_SETFL, O_ASYNC | O_RDWR) == 0;
}

/* Before the first signal, which may come to another thread. */
static void begin(ffm_sample_clock *clock, uint32_t period)
{
    clock->period = period;
    __atomic_store_n(&clock->runs, true, __ATOMIC_RELEASE);
}

/* The mapped page keeps the event alive, so that the program does not meet a file that it has not opened. */
static bool start_event(ffm_sample_clock *clock, pid_t thread)
{
    const int file = open_event(thread);
    if (file < 0)
        return false;
    void *page = MAP_FAILED;
    if (sends_signals(file, thread))
        page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    bool enabled = false;
    if (page != MAP_FAILED) {
        clock->page = page;
        clock->file = file;
        begin(clock, FFM_SAMPLE_EVENT_PERIOD);
        enabled = ffm_kernel(SYS_ioctl, (uint64_t)file, PERF_EVENT_IOC_ENABLE, 0, 0) == 0;
    }
    ffm_kernel(SYS_close, (uint64_t)file, 0, 0, 0);
    if (!enabled)
        ffm_sample_clock_stop(clock);
    return enabled;
}

/* Straight from the kernel: the C library gives its own numbers to timers. */
static bool start_timer(ffm_sample_clock *clock, pid_t thread)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = FFM_SAMPLE_SIGNAL};
    event.sigev_value.sival_ptr = clock;
    event._sigev_un._tid = thread;
    int timer = -1;
    if (ffm_kernel(SYS_timer_create, (uint64_t)(int64_t)clock_of(thread), (uint64_t)&event, (uint64_t)&timer, 0) != 0)
        return false;
    clock->timer = timer;
    begin(clock, timer_period());
    const struct timespec period = {.tv_nsec = clock->period};
    const struct itimerspec each = {period, period};
    if (ffm_kernel(SYS_timer_settime, (uint64_t)timer, 0, (uint64_t)&each, 0) == 0)
        return true;
    ffm_sample_clock_stop(clock);
    return false;
}

bool ffm_sample_clock_start(ffm_sample_clock *clock, pid_t thread)
{
    *clock = (ffm_sample_clock){.file = -1, .timer = -1};
    const bool timer = timer_interrupts_nothing();
    return (timer && start_timer(clock, thread)) || start_event(clock, thread) ||
           (!timer && start_timer(clock, thread));
}

/* Whether a signal comes from the clock at an address, which was as in `clock` when the signal was sent. */
static bool sent(const ffm_sample_clock *clock, const ffm_sample_clock *at, const siginfo_t *info)
{
    if (clock->page != NULL)
        return info->si_code == POLL_IN && info->si_fd == clock->file;
    return info->si_code == SI_TIMER && info->si_value.sival_ptr == at;
}

uint64_t ffm_sample_clock_told(const ffm_sample_clock *clock, const siginfo_t *info)
{
    if (!__atomic_load_n(&clock->runs, __ATOMIC_ACQUIRE) || !sent(clock, clock, info))
        return 0;
    return clock->page != NULL ? clock->period : (uint64_t)clock->period * (1 + (uint64_t)info->si_overrun);
}

void ffm_sample_clock_stop(ffm_sample_clock *clock)
{
    if (!clock->runs) /* it may be all zeros, and 0 the number of a timer of the program */
        return;
    if (clock->page != NULL)
        munmap(clock->page, PAGE);
    if (clock->timer >= 0)
        ffm_kernel(SYS_timer_delete, (uint64_t)clock->timer, 0, 0, 0);
    *clock = (ffm_sample_clock){.file = -1, .timer = -1};
}

static int64_t accept_pending(siginfo_t *info)
{
    const uint64_t ours = UINT64_C(1) << (FFM_SAMPLE_SIGNAL - 1);
    const struct timespec now = {0};
    return ffm_kernel(SYS_rt_sigtimedwait, (uint64_t)&ours, (uint64_t)info, (uint64_t)&now, sizeof ours);
}

void ffm_sample_clock_take_back(ffm_sample_clock *clock)
{
    const ffm_sample_clock ticking = *clock;
    siginfo_t info, other;
    bool others = false;
    if (!clock->runs)
        return;
    ffm_sample_clock_stop(clock);
    while (accept_pending(&info) > 0) {
        if (sent(&ticking, clock, &info))
            continue;
        other = info;
        others = true;
    }
    if (others)
        ffm_kernel(SYS_rt_tgsigqueueinfo, (uint64_t)getpid(), (uint64_t)gettid(), FFM_SAMPLE_SIGNAL, (uint64_t)&other);
}
