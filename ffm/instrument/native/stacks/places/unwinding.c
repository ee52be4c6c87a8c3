#include "unwinding.h"

#include <pthread.h>
#include <sched.h>
#include <stdint.h>

#include "clock.h"
#include "kernel.h"

static const uint64_t patience = 100 * 1000 * 1000; /* nanoseconds */

static uint32_t within; /* threads */
static uint32_t forks;  /* in progress, and the thread that is alone within */

static __thread uint32_t depth __attribute__((tls_model("initial-exec"))); /* also of the forking thread */
/* Whether the thread could be cancelled before, and when. */
static __thread int state_before __attribute__((tls_model("initial-exec")));
static __thread int type_before __attribute__((tls_model("initial-exec")));

static void wait_for(const uint32_t *count, uint32_t wanted)
{
    const uint64_t since = ffm_now();
    while (__atomic_load_n(count, __ATOMIC_SEQ_CST) > wanted && ffm_now() - since < patience)
        sched_yield();
}

/* libunwind makes system calls in which a thread is cancelled. It would keep the locks. And if a signal had interrupted
 * it, C++ would end the program, because there is no call at which its function can be left.
 *
 * A thread that a signal interrupted in a system call may be cancelled at any place, and the C library's handler looks
 * at nothing else. libunwind lets its signal through, though our handlers block it: pthread_sigmask never does. */
static void enter(void)
{
    int state, type;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
    state_before = state;
    type_before = type;
    depth = 1;
}

/* The type comes last: a thread that ends as its state changes has not the result of a cancelled one (glibc 2.36). */
static void leave(void)
{
    int state = state_before, type = type_before;
    depth = 0;
    pthread_setcancelstate(state, &state);
    pthread_setcanceltype(type, &type);
}

void ffm_unwinding_begin(void)
{
    if (depth > 0) {
        depth++;
        return;
    }
    enter();
    __atomic_add_fetch(&within, 1, __ATOMIC_SEQ_CST);
    if (__builtin_expect(__atomic_load_n(&forks, __ATOMIC_SEQ_CST) == 0, 1))
        return;
    __atomic_sub_fetch(&within, 1, __ATOMIC_SEQ_CST);
    wait_for(&forks, 0);
    __atomic_add_fetch(&within, 1, __ATOMIC_SEQ_CST);
}

void ffm_unwinding_end(void)
{
    if (depth > 1) {
        depth--;
        return;
    }
    __atomic_sub_fetch(&within, 1, __ATOMIC_SEQ_CST);
    leave();
}

static void let_others_in(void)
{
    __atomic_sub_fetch(&within, 1, __ATOMIC_SEQ_CST);
    __atomic_sub_fetch(&forks, 1, __ATOMIC_SEQ_CST);
}

/* Whether the signal that cancels the thread is on its way: a handler interrupted a system call in which the thread may
 * be cancelled, and blocks that signal. Since glibc has marked the thread (2.36), libunwind's system calls would wait
 * for the signal, which comes once the handler has returned. */
static bool is_being_cancelled(void)
{
    static const int cancellation = 32; /* a signal that glibc keeps for itself */
    uint64_t pending = 0;
    return type_before == PTHREAD_CANCEL_ASYNCHRONOUS &&
           ffm_kernel(SYS_rt_sigpending, (uint64_t)&pending, sizeof pending, 0, 0) == 0 &&
           (pending >> (cancellation - 1) & 1) != 0;
}

bool ffm_unwinding_begin_alone(void)
{
    if (depth > 0)
        return false;
    enter(); /* a thread that is cancelled while others are kept out would keep them out forever */
    uint32_t none = 0;
    if (!is_being_cancelled() &&
        __atomic_compare_exchange_n(&forks, &none, 1, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
        if (__atomic_add_fetch(&within, 1, __ATOMIC_SEQ_CST) == 1)
            return true;
        let_others_in();
    }
    leave();
    return false;
}

void ffm_unwinding_end_alone(void)
{
    let_others_in();
    leave();
}

bool ffm_unwinding_here(void)
{
    return depth > 0;
}

void ffm_unwinding_before_fork(void)
{
    const uint32_t own = depth > 0; /* a handler forks */
    depth++;
    __atomic_add_fetch(&forks, 1, __ATOMIC_SEQ_CST);
    wait_for(&within, own);
}

void ffm_unwinding_forked(void)
{
    __atomic_sub_fetch(&forks, 1, __ATOMIC_SEQ_CST);
    depth--;
}

void ffm_unwinding_after_fork(void)
{
    depth--;
    forks = 0;
    within = depth > 0;
}
