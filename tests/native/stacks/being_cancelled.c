/* Whether a thread unwinds in a handler that holds back the signal that cancels it. Ends with 0 if it does so before
 * that signal comes and where it can be cancelled only at certain calls, and not while the signal waits for it. */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernel.h"
#include "unwinding.h"

enum { CANCELLATION = 32 }; /* the C library's signal, which pthread_sigmask does not block */

static bool begins(int type)
{
    int before;
    pthread_setcanceltype(type, &before);
    const bool begun = ffm_unwinding_begin_alone();
    if (begun)
        ffm_unwinding_end_alone();
    return begun;
}

static void *run(void *failed)
{
    uint64_t mask = UINT64_C(1) << (CANCELLATION - 1);
    ffm_kernel(SYS_rt_sigprocmask, SIG_BLOCK, (uint64_t)&mask, 0, sizeof mask);
    const bool before = begins(PTHREAD_CANCEL_ASYNCHRONOUS);
    syscall(SYS_tgkill, getpid(), gettid(), CANCELLATION);
    const bool pending = begins(PTHREAD_CANCEL_ASYNCHRONOUS);
    const bool elsewhere = begins(PTHREAD_CANCEL_DEFERRED);
    *(bool *)failed = !before || pending || !elsewhere;
    return NULL; /* the signal ends with the thread */
}

int main(void)
{
    bool failed = true;
    pthread_t thread;
    pthread_create(&thread, NULL, run, &failed);
    pthread_join(thread, NULL);
    return failed;
}
