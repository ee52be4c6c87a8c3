#include "thread_lives.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "clock.h"
#include "detached.h"
#include "foreign.h"
#include "instruments.h"
#include "sink.h"
#include "starts.h"

typedef uint64_t word;
typedef word (*function)(word, word, word, word);

/* Remembered until the driver is loaded, which begins the recording. If there are more, only the first are recorded:
 * threads whose start is not known count as started by nobody. */
enum { EARLY = 1 << 12 };

#define FUNCTIONS(X)                                                                                                   \
    X(pthread_create)                                                                                                  \
    X(pthread_join)                                                                                                    \
    X(pthread_tryjoin_np)                                                                                              \
    X(pthread_timedjoin_np)                                                                                            \
    X(pthread_clockjoin_np)

#define PLACE(name) PLACE_##name,
enum { FUNCTIONS(PLACE) };

#define ORIGINAL(name) ((function)ffm_followed_original(&ffm_thread_lives[PLACE_##name]))

static struct {
    pthread_mutex_t lock;
    bool open;
    uint32_t count;
    ffm_life early[EARLY];
    ffm_stream records;
} lives = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void append(const ffm_life *life)
{
    ffm_life *out = ffm_sink_reserve(&lives.records, FFM_CHUNK_LIVES, 0, sizeof *life);
    if (out == NULL)
        return;
    *out = *life;
    ffm_sink_commit(&lives.records, sizeof *life);
}

static void note(const ffm_life *life)
{
    const int error = errno;
    pthread_mutex_lock(&lives.lock);
    if (lives.open)
        append(life);
    else if (lives.count < EARLY)
        lives.early[lives.count++] = *life;
    pthread_mutex_unlock(&lives.lock);
    errno = error;
}

void ffm_thread_lives_open(void)
{
    pthread_mutex_lock(&lives.lock);
    for (uint32_t i = 0; !lives.open && i < lives.count; i++)
        append(&lives.early[i]);
    __atomic_store_n(&lives.open, true, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lives.lock);
}

void ffm_thread_lives_number(uint64_t name, uint32_t number)
{
    if (__atomic_load_n(&lives.open, __ATOMIC_ACQUIRE))
        note(&(ffm_life){.time = ffm_now(), .name = name, .number = number, .kind = FFM_LIFE_FIRST});
}

void ffm_thread_lives_after_fork(void)
{
    pthread_mutex_init(&lives.lock, NULL);
    ffm_sink_release(&lives.records);
    lives.records = (ffm_stream){0};
}

static bool wanted(const void *caller)
{
    return !ffm_detached() && !ffm_instruments_hold((uint64_t)caller) && !ffm_foreign_holds((uint64_t)caller);
}

static word wrap_pthread_create(word thread, word how, word what, word argument)
{
    const bool ours = !wanted(__builtin_return_address(0));
    ffm_start *start = ours ? NULL : ffm_starts_take((void *(*)(void *))what, (void *)argument);
    const uint64_t before = ffm_now();
    const word result = start == NULL ? ORIGINAL(pthread_create)(thread, how, what, argument)
                                      : ORIGINAL(pthread_create)(thread, how, (word)ffm_starts_run, (word)start);
    if ((int)result != 0 && start != NULL)
        ffm_starts_give_back(start);
    if ((int)result == 0 && !ours)
        note(&(ffm_life){.time = before,
                         .name = *(const pthread_t *)thread,
                         .by = (uint64_t)pthread_self(),
                         .kind = FFM_LIFE_STARTED});
    return result;
}

#define JOINING(how)                                                                                                   \
    static word wrap_##how(word name, word p, word q, word r)                                                          \
    {                                                                                                                  \
        const word result = ORIGINAL(how)(name, p, q, r);                                                              \
        if ((int)result == 0 && wanted(__builtin_return_address(0)))                                                   \
            note(&(ffm_life){                                                                                          \
                .time = ffm_now(), .name = name, .by = (uint64_t)pthread_self(), .kind = FFM_LIFE_JOINED});            \
        return result;                                                                                                 \
    }
JOINING(pthread_join)
JOINING(pthread_tryjoin_np)
JOINING(pthread_timedjoin_np)
JOINING(pthread_clockjoin_np)

#define ROW(name) {FFM_FOLLOWED(name)},
ffm_followed ffm_thread_lives[] = {FUNCTIONS(ROW){.name = NULL}};
