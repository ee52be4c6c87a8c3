#include "signal_waits.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <time.h>

#include "sample_clock.h"
#include "samples.h"

enum { WAIT, WAIT_INFO, TIMED_WAIT, DESCRIPTOR };

typedef int (*wait_function)(const sigset_t *, int *);
typedef int (*wait_info_function)(const sigset_t *, siginfo_t *);
typedef int (*timed_wait_function)(const sigset_t *, siginfo_t *, const struct timespec *);
typedef int (*descriptor_function)(int, const sigset_t *, int);

static uintptr_t original(int place)
{
    return ffm_followed_original(&ffm_signal_waits[place]);
}

static void takes(const sigset_t *signals)
{
    const int error = errno;
    if (signals != NULL && sigismember(signals, FFM_SAMPLE_SIGNAL) == 1)
        ffm_samples_thread_takes_signals();
    errno = error;
}

static int wrap_sigwait(const sigset_t *signals, int *number)
{
    takes(signals);
    return ((wait_function)original(WAIT))(signals, number);
}

static int wrap_sigwaitinfo(const sigset_t *signals, siginfo_t *info)
{
    takes(signals);
    return ((wait_info_function)original(WAIT_INFO))(signals, info);
}

static int wrap_sigtimedwait(const sigset_t *signals, siginfo_t *info, const struct timespec *limit)
{
    takes(signals);
    return ((timed_wait_function)original(TIMED_WAIT))(signals, info, limit);
}

static int wrap_signalfd(int file, const sigset_t *signals, int flags)
{
    takes(signals);
    return ((descriptor_function)original(DESCRIPTOR))(file, signals, flags);
}

ffm_followed ffm_signal_waits[] = {[WAIT] = {FFM_FOLLOWED(sigwait)},
                                   [WAIT_INFO] = {FFM_FOLLOWED(sigwaitinfo)},
                                   [TIMED_WAIT] = {FFM_FOLLOWED(sigtimedwait)},
                                   [DESCRIPTOR] = {FFM_FOLLOWED(signalfd)},
                                   {.name = NULL}};
