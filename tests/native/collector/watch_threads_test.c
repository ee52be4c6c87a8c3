/* Threads that transfer, wait, touch, make system calls and free memory at once, while it is watched. Nothing touches a
 * page that is protected, because ThreadSanitizer and handlers of faults do not go together: accesses are told as the
 * handler tells them. Built with ThreadSanitizer by test_threads.py. */
#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "accesses.h"
#include "arming.h"
#include "aside.h"
#include "clock.h"
#include "collector.h"
#include "extents.h"
#include "modes.h"
#include "peek.h"
#include "questions.h"
#include "ranges.h"
#include "resting.h"
#include "thread.h"
#include "threads.h"
#include "waiters.h"
#include "waits.h"
#include "watched.h"

enum {
    THREADS = 4,
    TURNS = 600,
    FORKS_FROM = 400, /* turns: a fork gives up what others may touch meanwhile, also what stays watched till then */
    BLOCKS = 12,
    KEPT = 4,
    PAGE = FFM_RANGES_PAGE,
    BYTES = 200,
    BRIEFLY = 1,
    AS_OTHERS_WORK = 200, /* microseconds */
    CONTEXT = 1,
    NEVER_WAITED_FOR = 99
};

static char *memory; /* a page for each block of each thread, then those that stay watched */
static bool over;
static pthread_barrier_t begin, asked, done;

static uint64_t block_of(int thread, int number)
{
    return (uint64_t)memory + (uint64_t)(thread * BLOCKS + number % BLOCKS) * PAGE;
}

static uint64_t kept(int number)
{
    return (uint64_t)memory + (uint64_t)(THREADS * BLOCKS + number) * PAGE;
}

static ffm_box box_of(uint64_t start)
{
    return (ffm_box){start, BYTES, BYTES, 1, BYTES, 1, true};
}

static void transfer(uint64_t start, uint64_t stream, int number, bool download)
{
    const ffm_range range = {.box = box_of(start),
                             .operation = (uint64_t)number,
                             .thread = ffm_thread_self()->number,
                             .context = CONTEXT,
                             .stream = stream,
                             .issued = ffm_now(),
                             .waits = ffm_waiters_waits(),
                             .download = download,
                             .granule = download ? PAGE : 0,
                             .writes_only = !download};
    ffm_ranges_lock();
    assert(ffm_ranges_add(&range));
    ffm_ranges_unlock();
}

static void wait_for(uint64_t stream, bool everything)
{
    const ffm_cover cover = {.everything = everything, .context = CONTEXT, .stream = stream, .before = ffm_now() + 1};
    ffm_arming_wait_ended(&cover, ffm_thread_self(), 0);
}

static void touch(uint64_t start, bool writing)
{
    ffm_ranges_lock();
    ffm_access_seen(start, start + sizeof(uint64_t), writing, ffm_now(), 0);
    ffm_ranges_unlock();
}

/* What rests while others sleep is armed before they continue. */
static void sleep_for(unsigned microseconds)
{
    ffm_threads_sleep();
    usleep(microseconds);
    ffm_resting_wake();
    ffm_ranges_lock();
    assert(ffm_ranges_resting() == 0 || ffm_threads_alone() != 0);
    ffm_ranges_unlock();
}

static void turn(int thread, int number)
{
    const int other = (thread + number) % THREADS;
    const uint64_t mine = block_of(thread, number), theirs = block_of(other, number / 2);
    transfer(mine, (uint64_t)thread, number, number % 3 != 0);
    wait_for((uint64_t)(number % 2 ? thread : other), number % 5 == 0);
    ffm_aside_system_call(theirs, BYTES, number % 2 == 0);
    ffm_aside_over();
    touch(number % 4 ? mine : theirs, true);
    const ffm_box box = box_of(theirs);
    ffm_peek(&box);
    ffm_peek_over();
    ffm_extents_used_by_gpu(mine, mine + BYTES / 2);
    ffm_watch_in_flight(theirs, theirs + BYTES);
    ffm_watch_freed(block_of(thread, number + BLOCKS / 2), BYTES);
    if (number >= FORKS_FROM && number % 50 == 0) {
        ffm_watch_before_fork();
        ffm_watch_forked();
    }
    if (number % 70 == 0)
        ffm_watch_released(mine, PAGE, true);
    if (number % 10 == 0)
        sleep_for(thread == 0 ? BRIEFLY : AS_OTHERS_WORK);
}

/* Of ThreadSanitizer's. */
void AnnotateIgnoreReadsBegin(const char *file, int line);
void AnnotateIgnoreReadsEnd(const char *file, int line);

/* Whoever asks without the lock must not miss what is there all the time. What is read meanwhile may be torn. */
static void *ask(void *unused)
{
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
        for (int i = 0; i < THREADS * KEPT; i++)
            assert(ffm_ranges_reach(kept(i), kept(i) + BYTES));
        assert(ffm_ranges_end_behind(kept(THREADS * KEPT - 1)));
    }
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
    return unused;
}

static void *work(void *opaque)
{
    const int thread = (int)(intptr_t)opaque;
    ffm_threads_join();
    for (int i = 0; i < KEPT; i++)
        transfer(kept(thread * KEPT + i), NEVER_WAITED_FOR, 0, true);
    pthread_barrier_wait(&begin);
    for (int number = 1; number <= TURNS; number++) {
        if (number == FORKS_FROM) {
            pthread_barrier_wait(&asked);
            pthread_barrier_wait(&asked);
        }
        turn(thread, number);
    }
    pthread_barrier_wait(&done);
    pause(); /* as in threads_test.c */
    return NULL;
}

int main(int count, char **arguments)
{
    assert(count == 2);
    assert(ffm_collector_open(arguments[1], FFM_MODE_CONTENTS, NULL) == 0);
    ffm_extents_open(1000);
    ffm_accesses_of_others(true);
    memory = mmap(NULL, (size_t)THREADS * (BLOCKS + KEPT) * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                  -1, 0);
    assert(memory != MAP_FAILED);
    pthread_barrier_init(&begin, NULL, THREADS + 1);
    pthread_barrier_init(&asked, NULL, THREADS + 1);
    pthread_barrier_init(&done, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        ffm_threads_begin();
        assert(pthread_create(&thread, NULL, work, (void *)(intptr_t)i) == 0);
    }
    pthread_t asking;
    ffm_threads_join();
    ffm_threads_sleep();
    pthread_barrier_wait(&begin);
    assert(pthread_create(&asking, NULL, ask, NULL) == 0);
    pthread_barrier_wait(&asked);
    __atomic_store_n(&over, true, __ATOMIC_RELAXED);
    pthread_join(asking, NULL);
    pthread_barrier_wait(&asked);
    pthread_barrier_wait(&done);
    _exit(0);
}
