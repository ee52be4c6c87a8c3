#include "lock_waits.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "clock.h"
#include "instruments.h"
#include "records.h"
#include "sink.h"
#include "thread.h"

typedef uint64_t word;
typedef word (*function)(word, word, word, word);

/* Whoever waits for an object takes a place, by its address. Whoever lets it go writes there when, and who it is. So
 * nothing is written as long as nobody waits. And nobody has to wait for us: a signal handler that posts could not. */
typedef struct {
    uint64_t object; /* 0: free */
    uint64_t let_go; /* nanoseconds since `opened`, above the number of the thread; 0 if nobody has */
} place;

enum {
    PLACES = 1 << 12,
    TRIED = 8, /* places for an object. A thread that finds none is not recorded. */
    THREAD_BITS = 16,
    NOBODY = 0xFFFF /* a thread without a number: it has not called the driver */
};

#define FUNCTIONS(X)                                                                                                   \
    X(pthread_mutex_lock)                                                                                              \
    X(pthread_mutex_timedlock)                                                                                         \
    X(pthread_mutex_clocklock)                                                                                         \
    X(pthread_mutex_unlock)                                                                                            \
    X(pthread_rwlock_rdlock)                                                                                           \
    X(pthread_rwlock_wrlock)                                                                                           \
    X(pthread_rwlock_unlock)                                                                                           \
    X(pthread_cond_wait)                                                                                               \
    X(pthread_cond_timedwait)                                                                                          \
    X(pthread_cond_clockwait)                                                                                          \
    X(pthread_cond_signal)                                                                                             \
    X(pthread_cond_broadcast)                                                                                          \
    X(pthread_barrier_wait)                                                                                            \
    X(sem_wait)                                                                                                        \
    X(sem_timedwait)                                                                                                   \
    X(sem_clockwait)                                                                                                   \
    X(sem_post)

#define PLACE(name) PLACE_##name,
enum { FUNCTIONS(PLACE) };

#define ORIGINAL(name) ((function)ffm_followed_original(&ffm_lock_waits[PLACE_##name]))

static place places[PLACES + TRIED];
static uint32_t waiting; /* how many places are taken */
static uint64_t opened;  /* 0: nothing is recorded yet */

static struct {
    pthread_mutex_t lock;
    uint32_t count;
    ffm_stream stream;
} records = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The calling thread's last wait, if it was given up when its time was over. */
static __thread struct {
    uint64_t object;
    uint64_t since;
    uint64_t until;
} given_up __attribute__((tls_model("initial-exec")));

void ffm_lock_waits_open(void)
{
    __atomic_store_n(&opened, ffm_now(), __ATOMIC_RELEASE);
}

void ffm_lock_waits_after_fork(void)
{
    pthread_mutex_init(&records.lock, NULL);
    ffm_sink_release(&records.stream);
    records.stream = (ffm_stream){0};
    records.count = 0;
    memset(places, 0, sizeof places);
    __atomic_store_n(&waiting, 0, __ATOMIC_RELAXED);
}

static place *first_of(uint64_t object)
{
    return &places[(object * 0x9E3779B97F4A7C15u) >> 52];
}

static place *taken_for(uint64_t object)
{
    place *const first = first_of(object);
    for (int i = 0; object != 0 && i < TRIED; i++) {
        uint64_t nothing = 0;
        if (!__atomic_compare_exchange_n(&first[i].object, &nothing, object, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
            continue;
        __atomic_fetch_add(&waiting, 1, __ATOMIC_SEQ_CST);
        return &first[i];
    }
    return NULL;
}

static inline bool somebody_waits(void)
{
    return __builtin_expect(__atomic_load_n(&waiting, __ATOMIC_SEQ_CST) != 0, 0);
}

/* Whoever is about to let an object go says so, if somebody waits. */
static __attribute__((noinline)) void let_go(uint64_t object)
{
    place *const first = first_of(object);
    uint64_t now = 0;
    for (int i = 0; i < TRIED; i++) {
        if (__atomic_load_n(&first[i].object, __ATOMIC_ACQUIRE) != object)
            continue;
        if (now == 0) {
            const ffm_thread *thread = ffm_thread_peek();
            const uint64_t who = thread != NULL && thread->number < NOBODY ? thread->number : NOBODY;
            now = (ffm_now() - __atomic_load_n(&opened, __ATOMIC_ACQUIRE)) << THREAD_BITS | who;
        }
        __atomic_store_n(&first[i].let_go, now, __ATOMIC_RELEASE);
    }
}

/* A wait under way, for one object or, besides a condition variable, its mutex. */
typedef struct {
    place *of[2];
} wait_of;

/* When what was waited for was let go for the last time; 0 if it was not. Whoever wakes up for a condition also needs
 * its mutex then. */
static uint64_t last_let_go(const wait_of *wait)
{
    uint64_t last = wait->of[0] == NULL ? 0 : __atomic_load_n(&wait->of[0]->let_go, __ATOMIC_ACQUIRE);
    if (last != 0 && wait->of[1] != NULL) {
        const uint64_t mutex = __atomic_load_n(&wait->of[1]->let_go, __ATOMIC_ACQUIRE);
        last = mutex > last ? mutex : last;
    }
    return last;
}

/* Also runs if the thread is cancelled while it waits. */
static void leave(wait_of *wait)
{
    for (int i = 0; i < 2; i++) {
        if (wait->of[i] == NULL)
            continue;
        __atomic_store_n(&wait->of[i]->let_go, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&wait->of[i]->object, 0, __ATOMIC_RELEASE);
        __atomic_fetch_sub(&waiting, 1, __ATOMIC_RELAXED);
    }
}

static void note(const ffm_lock_wait *found)
{
    const int error = errno;
    pthread_mutex_lock(&records.lock);
    ffm_lock_wait *out = records.count < FFM_MOST_LOCK_WAITS
                             ? ffm_sink_reserve(&records.stream, FFM_CHUNK_LOCK_WAITS, 0, sizeof *out)
                             : NULL;
    if (out != NULL) {
        *out = *found;
        ffm_sink_commit(&records.stream, sizeof *out);
        records.count++;
    }
    pthread_mutex_unlock(&records.lock);
    errno = error;
}

/* Whether a wait of the calling thread is to be recorded: not one of the instruments, nor one within a driver call,
 * which is part of that call. */
static bool wanted(const ffm_thread *thread, const void *caller)
{
    return thread != NULL && thread->depth == 0 && thread->bypass == 0 &&
           __atomic_load_n(&opened, __ATOMIC_ACQUIRE) != 0 && !ffm_instruments_hold((uint64_t)caller);
}

/* A thread that waits only for a while and then again, as for Python's lock of the interpreter, waits all the time. */
static uint64_t begin_of(uint64_t object, uint64_t since)
{
    const bool again = given_up.object == object && since - given_up.until < given_up.until - given_up.since;
    return again ? given_up.since : since;
}

typedef struct {
    function original;
    word arguments[4]; /* the first is the object */
    word also;         /* the mutex of a condition variable, or 0 */
    int done;          /* what it returns besides 0 if what was waited for has come */
    const void *caller;
} call;

static word run(const call *what)
{
    return what->original(what->arguments[0], what->arguments[1], what->arguments[2], what->arguments[3]);
}

static word wait_for(const call *what)
{
    const ffm_thread *thread = ffm_thread_peek();
    if (!wanted(thread, what->caller))
        return run(what);
    const uint64_t object = what->arguments[0], since = begin_of(object, ffm_now());
    wait_of wait __attribute__((cleanup(leave))) = {{taken_for(object), taken_for(what->also)}};
    const word result = run(what);
    const bool came = (int)result == 0 || (int)result == what->done;
    const uint64_t last = came ? last_let_go(&wait) : 0, released = opened + (last >> THREAD_BITS);
    const uint32_t by = last & NOBODY;
    given_up.object = came ? 0 : object;
    given_up.since = since;
    given_up.until = came ? 0 : ffm_now();
    if (last != 0 && by != NOBODY && by != thread->number && released >= since + FFM_SHORTEST_LOCK_WAIT)
        note(&(ffm_lock_wait){.since = since, .released = released, .waiter = thread->number, .releaser = by});
    return result;
}

#define CALL(name, also_waits, also_done, ...)                                                                         \
    wait_for(&(call){.original = ORIGINAL(name),                                                                       \
                     .arguments = {__VA_ARGS__},                                                                       \
                     .also = also_waits,                                                                               \
                     .done = also_done,                                                                                \
                     .caller = __builtin_return_address(0)})

/* Functions that take a lock: one that is free is taken at once. */
#define TAKING(name, attempt, parameters, ...)                                                                         \
    static word wrap_##name parameters                                                                                 \
    {                                                                                                                  \
        const int taken = attempt((void *)lock);                                                                       \
        if (__builtin_expect(taken != EBUSY, 1))                                                                       \
            return (word)taken;                                                                                        \
        return CALL(name, 0, EOWNERDEAD, __VA_ARGS__);                                                                 \
    }
TAKING(pthread_mutex_lock, pthread_mutex_trylock, (word lock), lock)
TAKING(pthread_mutex_timedlock, pthread_mutex_trylock, (word lock, word until), lock, until)
TAKING(pthread_mutex_clocklock, pthread_mutex_trylock, (word lock, word clock, word until), lock, clock, until)
TAKING(pthread_rwlock_rdlock, pthread_rwlock_tryrdlock, (word lock), lock)
TAKING(pthread_rwlock_wrlock, pthread_rwlock_trywrlock, (word lock), lock)

/* Functions that wait for a condition, and let its mutex go meanwhile. */
#define WAITING(name)                                                                                                  \
    static word wrap_##name(word condition, word mutex, word q, word r)                                                \
    {                                                                                                                  \
        if (somebody_waits())                                                                                          \
            let_go(mutex);                                                                                             \
        return CALL(name, mutex, EOWNERDEAD, condition, mutex, q, r);                                                  \
    }
WAITING(pthread_cond_wait)
WAITING(pthread_cond_timedwait)
WAITING(pthread_cond_clockwait)

/* Functions that take from a semaphore. */
#define COUNTING(name)                                                                                                 \
    static word wrap_##name(word semaphore, word p, word q, word r)                                                    \
    {                                                                                                                  \
        int value = 0;                                                                                                 \
        if (sem_getvalue((sem_t *)semaphore, &value) == 0 && value > 0)                                                \
            return ORIGINAL(name)(semaphore, p, q, r);                                                                 \
        return CALL(name, 0, 0, semaphore, p, q, r);                                                                   \
    }
COUNTING(sem_wait)
COUNTING(sem_timedwait)
COUNTING(sem_clockwait)

/* The last thread that comes lets the others go. */
static word wrap_pthread_barrier_wait(word barrier, word p, word q, word r)
{
    if (somebody_waits())
        let_go(barrier);
    return CALL(pthread_barrier_wait, 0, PTHREAD_BARRIER_SERIAL_THREAD, barrier, p, q, r);
}

/* Mostly nobody waits: then there is nothing to keep while something else is done. */
#define LETTING_GO(name)                                                                                               \
    static __attribute__((noinline)) word let_go_in_##name(word object)                                                \
    {                                                                                                                  \
        let_go(object);                                                                                                \
        return ORIGINAL(name)(object, 0, 0, 0);                                                                        \
    }                                                                                                                  \
    static word wrap_##name(word object)                                                                               \
    {                                                                                                                  \
        return somebody_waits() ? let_go_in_##name(object) : ORIGINAL(name)(object, 0, 0, 0);                          \
    }
LETTING_GO(pthread_mutex_unlock)
LETTING_GO(pthread_rwlock_unlock)
LETTING_GO(pthread_cond_signal)
LETTING_GO(pthread_cond_broadcast)
LETTING_GO(sem_post)

#define ROW(name) {FFM_FOLLOWED(name)},
ffm_followed ffm_lock_waits[] = {FUNCTIONS(ROW){.name = NULL}};
