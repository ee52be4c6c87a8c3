#include "threads.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "blocked_calls.h"
#include "kernel.h"

enum { INSTRUMENTS = 64, ASKED = 1 << 12, LOOKS = 2000, LOOK_EACH = 100 * 1000 };

/* Examining a thread that cannot be asked costs about 30 us. After this many attempts it counts as lost. */
enum { VAIN_LOOKS = 1 << 14 };

/* Threads of the instruments, which touch none of the program's memory. */
static struct {
    uint32_t count;
    pid_t threads[INSTRUMENTS];
} instruments;

static struct {
    pthread_mutex_t lock; /* held by the asking thread */
    uint32_t running;     /* at most; the first thread, and those that were seen or started */
    int32_t asleep;       /* of them */
    uint64_t woken;       /* how often one woke or was added to them */
    uint32_t asked, silent;
    pid_t threads[ASKED];          /* those asked: negative once they have answered or ended */
    ffm_blocked_call calls[ASKED]; /* that they were in */
    uint32_t vain;                 /* attempts that found a thread that cannot be asked now */
    bool complete;                 /* all have joined, and the threads that they start are seen */
    bool lost;
    bool functions_lent;
} threads = {.lock = PTHREAD_MUTEX_INITIALIZER, .running = 1};

/* Calls `each` for every thread of the process. */
static void all_threads(void (*each)(pid_t))
{
    DIR *tasks = opendir("/proc/self/task");
    if (tasks == NULL) {
        ffm_threads_lose();
        return;
    }
    for (struct dirent *task; (task = readdir(tasks)) != NULL;) {
        const pid_t thread = atoi(task->d_name);
        if (thread > 0)
            each(thread);
    }
    closedir(tasks);
}

static __thread struct {
    bool counted, asleep;
} here __attribute__((tls_model("initial-exec")));

static void spare(pid_t thread)
{
    if (thread != getpid() && instruments.count < INSTRUMENTS)
        instruments.threads[instruments.count++] = thread;
}

void ffm_threads_spare_instruments(void)
{
    instruments.count = 0;
    all_threads(spare);
}

static bool exists(pid_t thread)
{
    return ffm_kernel(SYS_tgkill, (uint64_t)getpid(), (uint64_t)thread, 0, 0) == 0;
}

static bool was_asked(pid_t thread)
{
    const uint32_t asked = __atomic_load_n(&threads.asked, __ATOMIC_ACQUIRE); /* in a handler: of the one that asked */
    for (uint32_t i = 0; i < asked; i++)
        if (abs(__atomic_load_n(&threads.threads[i], __ATOMIC_RELAXED)) == thread)
            return true;
    return false;
}

static bool reluctant; /* some thread would notice the signal, and is asked later */

static void ask(pid_t thread)
{
    for (uint32_t i = 0; i < instruments.count; i++)
        if (instruments.threads[i] == thread)
            return;
    if (thread == gettid() || was_asked(thread))
        return;
    if (threads.asked == ASKED) {
        ffm_threads_lose();
        return;
    }
    ffm_blocked_call call;
    if (ffm_blocked_awaits(thread, SIGSYS, &call)) {
        reluctant = true;
        return;
    }
    threads.threads[threads.asked] = thread;
    threads.calls[threads.asked] = call;
    ffm_threads_begin();
    __atomic_add_fetch(&threads.silent, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&threads.asked, threads.asked + 1, __ATOMIC_RELEASE);
    ffm_kernel(SYS_tgkill, (uint64_t)getpid(), (uint64_t)thread, SIGSYS, 0);
}

/* Whether the thread at an index has not answered so far. */
static bool settle(uint32_t place, pid_t thread)
{
    if (!__atomic_compare_exchange_n(&threads.threads[place], &thread, -thread, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE))
        return false;
    __atomic_sub_fetch(&threads.silent, 1, __ATOMIC_RELEASE);
    return true;
}

bool ffm_threads_is_asked(void)
{
    const pid_t self = gettid();
    for (uint32_t i = __atomic_load_n(&threads.asked, __ATOMIC_ACQUIRE); i > 0; i--)
        if (__atomic_load_n(&threads.threads[i - 1], __ATOMIC_RELAXED) == self)
            return true;
    return false;
}

void ffm_threads_answer(ucontext_t *interrupted)
{
    const pid_t self = gettid();
    for (uint32_t i = __atomic_load_n(&threads.asked, __ATOMIC_ACQUIRE); i > 0; i--)
        if (settle(i - 1, self)) {
            ffm_blocked_call_again(&threads.calls[i - 1], interrupted);
            return;
        }
}

/* Threads that ended without an answer owe none. */
static void forget_gone(void)
{
    for (uint32_t i = 0; i < threads.asked && __atomic_load_n(&threads.silent, __ATOMIC_ACQUIRE) != 0; i++) {
        const pid_t thread = __atomic_load_n(&threads.threads[i], __ATOMIC_RELAXED);
        if (thread > 0 && !exists(thread) && settle(i, thread))
            ffm_threads_end();
    }
}

/* Threads that have joined report those that they start. So once all have joined, and no new one is found, all are
 * known. */
static bool look(void)
{
    forget_gone();
    if (__atomic_load_n(&threads.silent, __ATOMIC_ACQUIRE) != 0)
        return false;
    const uint32_t asked = threads.asked;
    reluctant = false;
    all_threads(ask);
    if (reluctant && ++threads.vain == VAIN_LOOKS)
        ffm_threads_lose();
    return threads.asked == asked && !reluctant;
}

bool ffm_threads_known(void)
{
    if (__atomic_load_n(&threads.lost, __ATOMIC_RELAXED))
        return false;
    if (__atomic_load_n(&threads.complete, __ATOMIC_ACQUIRE))
        return true;
    if (pthread_mutex_trylock(&threads.lock) != 0)
        return false;
    const bool all = look();
    __atomic_store_n(&threads.complete, all, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&threads.lock);
    return all;
}

void ffm_threads_ask(void)
{
    const struct timespec pause = {.tv_nsec = LOOK_EACH};
    for (int i = 0; i < LOOKS && !ffm_threads_known() && !threads.lost; i++)
        ffm_kernel(SYS_nanosleep, (uint64_t)&pause, 0, 0, 0);
}

void ffm_threads_begin(void)
{
    __atomic_add_fetch(&threads.running, 1, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&threads.woken, 1, __ATOMIC_SEQ_CST);
}

void ffm_threads_end(void)
{
    __atomic_sub_fetch(&threads.running, 1, __ATOMIC_RELAXED);
}

void ffm_threads_lose(void)
{
    __atomic_store_n(&threads.lost, true, __ATOMIC_RELAXED);
}

bool ffm_threads_lost(void)
{
    return __atomic_load_n(&threads.lost, __ATOMIC_RELAXED);
}

void ffm_threads_lend_functions(void)
{
    __atomic_store_n(&threads.functions_lent, true, __ATOMIC_RELAXED);
}

bool ffm_threads_functions_lent(void)
{
    return __atomic_load_n(&threads.functions_lent, __ATOMIC_RELAXED);
}

bool ffm_threads_several(void)
{
    return __atomic_load_n(&threads.running, __ATOMIC_RELAXED) > 1 || __atomic_load_n(&threads.lost, __ATOMIC_RELAXED);
}

void ffm_threads_join(void)
{
    here.counted = true;
}

/* A handler that comes in between wakes the thread before it is counted, so a sleeping thread can count as awake. */
void ffm_threads_sleep(void)
{
    if (!here.counted || !ffm_threads_several())
        return;
    here.asleep = true;
    __atomic_add_fetch(&threads.asleep, 1, __ATOMIC_SEQ_CST);
}

bool ffm_threads_wake(void)
{
    if (!here.asleep)
        return false;
    here.asleep = false;
    __atomic_sub_fetch(&threads.asleep, 1, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&threads.woken, 1, __ATOMIC_SEQ_CST);
    return true;
}

bool ffm_threads_asleep(void)
{
    return here.asleep;
}

/* A thread that wakes is awake before the number changes, and the number is read first here. So a thread that is not
 * seen awake changes it later. */
uint64_t ffm_threads_alone(void)
{
    const uint64_t woken = __atomic_load_n(&threads.woken, __ATOMIC_SEQ_CST);
    const int64_t running = __atomic_load_n(&threads.running, __ATOMIC_SEQ_CST);
    const int64_t awake = running - __atomic_load_n(&threads.asleep, __ATOMIC_SEQ_CST);
    if (!here.counted || __atomic_load_n(&threads.lost, __ATOMIC_RELAXED) || awake > (here.asleep ? 0 : 1))
        return 0;
    return woken + 1;
}

bool ffm_threads_alone_since(uint64_t told)
{
    return told != 0 && ffm_threads_alone() == told;
}

void ffm_threads_after_fork(void)
{
    pthread_mutex_init(&threads.lock, NULL);
    threads.running = 1;
    threads.asleep = 0;
    here.asleep = false;
    threads.asked = threads.silent = 0;
    threads.complete = true;
}
