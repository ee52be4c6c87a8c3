#include "handovers.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>

#include "accesses.h"
#include "clock.h"
#include "foreign.h"
#include "in_handler.h"
#include "instruments.h"
#include "ranges.h"
#include "records.h"
#include "thread.h"

typedef uint64_t word;
typedef word (*function)(word, word, word, word);

/* Threads whose numbers are known. Beyond them, what is unknown counts as not ordered. */
enum { THREADS = 1 << 10 };

#define FUNCTIONS(X)                                                                                                   \
    X(sem_init)                                                                                                        \
    X(sem_open)                                                                                                        \
    X(sem_post)                                                                                                        \
    X(sem_wait)                                                                                                        \
    X(sem_trywait)                                                                                                     \
    X(sem_timedwait)                                                                                                   \
    X(sem_clockwait)                                                                                                   \
    X(pthread_barrier_init)                                                                                            \
    X(pthread_barrier_wait)                                                                                            \
    X(pthread_join)

#define PLACE(name) PLACE_##name,
enum { FUNCTIONS(PLACE) };

#define ORIGINAL(name) ((function)ffm_followed_original(&ffm_handovers[PLACE_##name]))

static bool opened;
static uint32_t recorded;

static struct {
    uint32_t count;
    struct {
        uint64_t name;
        uint32_t number;
    } of[THREADS];
} threads;

void ffm_handovers_open(void)
{
    opened = true;
}

void ffm_handovers_thread(uint64_t name, uint32_t number)
{
    const uint32_t place = __atomic_fetch_add(&threads.count, 1, __ATOMIC_RELAXED);
    if (place >= THREADS)
        return;
    threads.of[place].number = number;
    __atomic_store_n(&threads.of[place].name, name, __ATOMIC_RELEASE);
}

/* The latest thread of that name; UINT64_MAX if none is known. */
static uint64_t number_of(uint64_t name)
{
    uint32_t count = __atomic_load_n(&threads.count, __ATOMIC_ACQUIRE);
    if (count > THREADS)
        return UINT64_MAX; /* a later one may have the same name */
    while (count-- > 0)
        if (__atomic_load_n(&threads.of[count].name, __ATOMIC_ACQUIRE) == name)
            return threads.of[count].number;
    return UINT64_MAX;
}

static bool wanted(const void *caller)
{
    const ffm_thread *thread = ffm_thread_peek();
    return opened && __atomic_load_n(&recorded, __ATOMIC_RELAXED) < FFM_MOST_HANDOVERS &&
           (thread == NULL || (thread->depth == 0 && thread->bypass == 0)) && !ffm_instruments_hold((uint64_t)caller) &&
           !ffm_foreign_holds((uint64_t)caller);
}

static void record(uint32_t kind, uint64_t object, uint64_t value)
{
    const int error = errno;
    const ffm_thread *thread = ffm_thread_self();
    if (thread != NULL && __atomic_fetch_add(&recorded, 1, __ATOMIC_RELAXED) < FFM_MOST_HANDOVERS) {
        const ffm_range nothing = {.operation = value, .thread = thread->number};
        ffm_ranges_lock();
        ffm_access_record(&nothing, kind, 0, object, ffm_now(), 0);
        ffm_ranges_unlock();
    }
    errno = error;
}

void ffm_handovers_starts(uint64_t object)
{
    if (!wanted(NULL))
        return;
    record(FFM_ACCESS_INITIAL, object, 0);
    record(FFM_ACCESS_POST, object, 0);
}

void ffm_handovers_begins(uint64_t object)
{
    if (wanted(NULL))
        record(FFM_ACCESS_TAKE, object, 0);
}

static word wrap_sem_init(word semaphore, word shared, word value, word r)
{
    if (wanted(__builtin_return_address(0)))
        record(FFM_ACCESS_INITIAL, semaphore, (int)shared == 0 ? value : FFM_POSTED_UNSEEN);
    return ORIGINAL(sem_init)(semaphore, shared, value, r);
}

/* The arguments after the second are variable: as many as the registers hold are handed on. */
static word wrap_sem_open(word name, word flags, word mode, word value)
{
    const word semaphore = ORIGINAL(sem_open)(name, flags, mode, value);
    if (semaphore != (word)(uintptr_t)SEM_FAILED && wanted(__builtin_return_address(0)))
        record(FFM_ACCESS_INITIAL, semaphore, FFM_POSTED_UNSEEN);
    return semaphore;
}

static word wrap_sem_post(word semaphore, word p, word q, word r)
{
    if (wanted(__builtin_return_address(0)))
        record(FFM_ACCESS_POST, semaphore, ffm_in_handler() ? FFM_POSTED_UNSEEN : 0);
    return ORIGINAL(sem_post)(semaphore, p, q, r);
}

#define TAKING(name)                                                                                                   \
    static word wrap_##name(word semaphore, word p, word q, word r)                                                    \
    {                                                                                                                  \
        const word result = ORIGINAL(name)(semaphore, p, q, r);                                                        \
        if ((int)result == 0 && wanted(__builtin_return_address(0)))                                                   \
            record(FFM_ACCESS_TAKE, semaphore, 0);                                                                     \
        return result;                                                                                                 \
    }
TAKING(sem_wait)
TAKING(sem_trywait)
TAKING(sem_timedwait)
TAKING(sem_clockwait)

static word wrap_pthread_barrier_init(word barrier, word attributes, word count, word r)
{
    if (wanted(__builtin_return_address(0))) {
        int shared = PTHREAD_PROCESS_PRIVATE;
        if (attributes != 0)
            pthread_barrierattr_getpshared((const pthread_barrierattr_t *)attributes, &shared);
        record(FFM_ACCESS_BARRIER, barrier, shared == PTHREAD_PROCESS_PRIVATE ? (uint32_t)count : FFM_POSTED_UNSEEN);
    }
    return ORIGINAL(pthread_barrier_init)(barrier, attributes, count, r);
}

static word wrap_pthread_barrier_wait(word barrier, word p, word q, word r)
{
    const bool recorded_here = wanted(__builtin_return_address(0));
    if (recorded_here)
        record(FFM_ACCESS_ARRIVE, barrier, 0);
    const word result = ORIGINAL(pthread_barrier_wait)(barrier, p, q, r);
    if (recorded_here && ((int)result == 0 || (int)result == PTHREAD_BARRIER_SERIAL_THREAD))
        record(FFM_ACCESS_LEAVE, barrier, 0);
    return result;
}

static word wrap_pthread_join(word name, word p, word q, word r)
{
    const word result = ORIGINAL(pthread_join)(name, p, q, r);
    const uint64_t number = number_of(name); /* only now is it certain to have one, if it ever called the driver */
    if ((int)result == 0 && number != UINT64_MAX && wanted(__builtin_return_address(0)))
        record(FFM_ACCESS_JOIN, number, 0);
    return result;
}

#define ROW(name) {FFM_FOLLOWED(name)},
ffm_followed ffm_handovers[] = {FUNCTIONS(ROW){.name = NULL}};
