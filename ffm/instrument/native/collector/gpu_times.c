#include "gpu_times.h"

#include <pthread.h>
#include <stddef.h>

#include "bindings.h"
#include "captures.h"
#include "clock.h"
#include "contexts.h"
#include "waits.h"

enum { DEFAULT_FLAGS = 0 };

/* If the GPU was idle, or became idle during the call, it waited for the work for part of the call's duration, after
 * the first event. That part is recorded with the time. If it is more than this many nanoseconds, and a larger share of
 * the measured time, nothing is learned: the first launch of a kernel may load its code. */
enum { SMALL_GAP = 100 * 1000, SMALL_SHARE = 20 };

/* The event whose time is known is renewed after this many nanoseconds: clocks drift apart, and the times between
 * events are single-precision numbers. */
static const uint64_t known_for = 1000 * 1000 * 1000;

/* Operations are timed in at most this many contexts, and this many at once; this many are checked after a wait,
 * because the others may take long to finish. */
enum { TIMED_CONTEXTS = 8, UNDER_WAY = 2048, LOOKED_AT = 32, STREAMS = 1 << 10 };

/* So many times in each context, a third event follows the second at once, because the GPU takes a while from one event
 * to the next. */
enum { ALONE = 64, ERROR_NOT_READY = 600 };

typedef uint64_t event;
typedef int (*create_function)(event *, uint64_t);
typedef int (*record_function)(event, uint64_t);
typedef int (*query_function)(event);
typedef int (*elapsed_function)(float *, event, event);

/* Of a slot in the ring. While it is `BEGUN`, it belongs to the thread that enqueues: the others may only say that its
 * events are `LOST`, with their context. */
typedef enum { FREE, BEGUN, LOST, ENQUEUED, OVER } state;

typedef struct {
    event begin, end;
    event alone; /* behind `end`, with nothing between them; 0 for none */
    uint64_t operation;
    uint64_t begun, arrived; /* when the first event had been enqueued, and when the work surely had (ffm_now) */
    uint32_t thread;
    bool idle; /* the stream, before the first event */
    state state;
} timing;

/* One per context: from `first` to `next` are operations being timed; the events of the others are ready for use. */
typedef struct {
    timing timings[UNDER_WAY];
    uint64_t first, next;
    uint32_t alone; /* how often a third event was recorded */
    event known;    /* an event that an idle GPU passed, */
    uint64_t at;    /* and when (ffm_now): events that are timed from it have times of that clock. 0: there is none */
} ring;

static struct {
    pthread_mutex_t lock; /* not held while work is enqueued, which waits if the driver's queue is full */
    ring rings[TIMED_CONTEXTS];
    uint32_t latest[STREAMS]; /* number of the last work enqueued, by stream */
    create_function create;
    record_function record;
    query_function query, stream_query;
    elapsed_function elapsed;
} times = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool ask_for_functions(void)
{
    times.create = (create_function)ffm_own_call(FFM_OWN_CALL_CREATE_EVENT, false);
    times.record = (record_function)ffm_own_call(FFM_OWN_CALL_RECORD_EVENT, false);
    times.query = (query_function)ffm_own_call(FFM_OWN_CALL_QUERY_EVENT, false);
    times.stream_query = (query_function)ffm_own_call(FFM_OWN_CALL_QUERY_STREAM, false);
    times.elapsed = (elapsed_function)ffm_own_call(FFM_OWN_CALL_TIME_BETWEEN_EVENTS, false);
    return times.create != NULL && times.record != NULL && times.query != NULL && times.stream_query != NULL &&
           times.elapsed != NULL;
}

/* Repeated until the driver's functions are known: some are hooked after the first call. */
static bool driver_can(void)
{
    static bool known;
    if (__atomic_load_n(&known, __ATOMIC_ACQUIRE))
        return true;
    pthread_mutex_lock(&times.lock);
    bool all = known || ask_for_functions();
    __atomic_store_n(&known, all, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&times.lock);
    return all;
}

static bool enqueues(const ffm_function *function)
{
    if (!function->asynchronous)
        return false;
    switch (function->kind) {
    case FFM_KIND_LAUNCH:
        return function->stream >= 0 || function->shape == FFM_SHAPE_LAUNCH_CONFIGURATION;
    case FFM_KIND_TRANSFER:
    case FFM_KIND_SET:
    case FFM_KIND_MIGRATION:
        return function->stream >= 0;
    default:
        return false;
    }
}

static uint32_t *latest_of(const ffm_function *function, const ffm_operation *operation, const ffm_thread *thread)
{
    return &times.latest[(ffm_stream_key(function, operation, thread) >> 4) * 0x9E3779B97F4A7C15ULL >> 54];
}

/* Milliseconds between two events that are over; false if the driver does not say, or says that the second came first,
 * as a virtual GPU on a busy machine may. */
static bool between(event first, event second, float *milliseconds)
{
    return times.elapsed(milliseconds, first, second) == 0 && *milliseconds >= 0;
}

/* Nanoseconds that the GPU waited after the first event until the work had surely arrived. */
static uint64_t idle_before(const ring *here, const timing *one)
{
    int64_t passed = (int64_t)one->begun;
    float milliseconds;
    if (!one->idle) {
        if (here->at == 0 || times.elapsed(&milliseconds, here->known, one->begin) != 0)
            return 0;
        const int64_t then = (int64_t)here->at + (int64_t)(milliseconds * 1e6f);
        passed = then > passed ? then : passed;
    }
    return (int64_t)one->arrived > passed ? one->arrived - (uint64_t)passed : 0;
}

static void record(const ring *here, ffm_thread *thread, const timing *one, float milliseconds)
{
    uint64_t nanoseconds = (uint64_t)(milliseconds * 1e6f + 0.5f);
    const uint64_t idle = idle_before(here, one);
    if (idle > SMALL_GAP && idle > nanoseconds / SMALL_SHARE)
        return;
    const ffm_gpu_time found = {
        .operation = one->operation,
        .nanoseconds = nanoseconds,
        .operation_thread = one->thread,
        .arriving = (uint32_t)(idle < nanoseconds ? idle : nanoseconds),
    };
    ffm_pack_record(&thread->gpu_times, FFM_CHUNK_GPU_TIMES, thread->number, 0, &found);
}

/* Of two events that were both queued behind work. */
static void record_alone(ffm_thread *thread, const timing *one)
{
    float milliseconds;
    if (one->alone == 0 || times.query(one->alone) != 0 || !between(one->end, one->alone, &milliseconds))
        return;
    const ffm_gpu_time found = {
        .operation = FFM_EVENTS_ALONE,
        .nanoseconds = (uint64_t)(milliseconds * 1e6f + 0.5f),
        .operation_thread = one->thread,
    };
    ffm_pack_record(&thread->gpu_times, FFM_CHUNK_GPU_TIMES, thread->number, 0, &found);
}

/* Record the times of what has finished in the current context. */
static void collect(ring *here, ffm_thread *thread)
{
    uint64_t last = here->next - here->first > LOOKED_AT ? here->first + LOOKED_AT : here->next;
    for (uint64_t place = here->first; place < last; place++) {
        timing *one = &here->timings[place % UNDER_WAY];
        float milliseconds;
        if (__atomic_load_n(&one->state, __ATOMIC_ACQUIRE) == ENQUEUED && times.query(one->end) == 0) {
            one->state = OVER;
            if (between(one->begin, one->end, &milliseconds)) {
                record(here, thread, one, milliseconds);
                record_alone(thread, one);
            }
        }
        if (place == here->first && __atomic_load_n(&one->state, __ATOMIC_ACQUIRE) == OVER) {
            here->first++;
            last += last < here->next;
        }
    }
}

/* A slot for timing an operation; NULL if all are taken, or the driver has no events for it. */
static timing *place_for(ring *here, ffm_thread *thread)
{
    if (here->next - here->first == UNDER_WAY)
        collect(here, thread);
    if (here->next - here->first == UNDER_WAY)
        return NULL;
    timing *one = &here->timings[here->next % UNDER_WAY];
    if (one->begin == 0 && (times.create(&one->begin, DEFAULT_FLAGS) != 0 || times.create(&one->end, DEFAULT_FLAGS))) {
        one->begin = 0;
        return NULL;
    }
    __atomic_store_n(&one->state, BEGUN, __ATOMIC_RELEASE);
    here->next++;
    return one;
}

/* The GPU passes an event on an idle stream at once. */
static void know_a_time(ring *here, uint64_t stream)
{
    if (here->at != 0 && ffm_now() - here->at < known_for)
        return;
    if (here->known == 0 && times.create(&here->known, DEFAULT_FLAGS) != 0)
        here->known = 0;
    else
        here->at = times.record(here->known, stream) == 0 ? ffm_now() : 0;
}

static void end_turn(timing *one, state next)
{
    state mine = BEGUN;
    if (__atomic_compare_exchange_n(&one->state, &mine, next, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        return;
    one->begin = 0;
    __atomic_store_n(&one->state, OVER, __ATOMIC_RELEASE);
}

/* A context ends, and its events with it. Which of the rings is its own is not known. */
static void lose_events(void)
{
    pthread_mutex_lock(&times.lock);
    for (uint32_t context = 0; context < TIMED_CONTEXTS; context++)
        times.rings[context].known = times.rings[context].at = 0;
    for (uint32_t place = 0; place < TIMED_CONTEXTS * UNDER_WAY; place++) {
        timing *one = &times.rings[place / UNDER_WAY].timings[place % UNDER_WAY];
        state now = BEGUN;
        if (__atomic_compare_exchange_n(&one->state, &now, LOST, false, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE) ||
            now == LOST || one->begin == 0)
            continue;
        one->begin = 0;
        one->state = OVER;
    }
    pthread_mutex_unlock(&times.lock);
}

void ffm_gpu_times_before(const ffm_function *function, const ffm_operation *operation, ffm_thread *thread)
{
    thread->timing = NULL;
    if (ffm_context_ends(function)) {
        lose_events();
        return;
    }
    uint32_t context = ffm_context_number();
    if (!enqueues(function) || ffm_capturing() || context >= TIMED_CONTEXTS || !driver_can())
        return;
    thread->enqueued = __atomic_add_fetch(latest_of(function, operation, thread), 1, __ATOMIC_RELAXED);
    const uint64_t stream = ffm_stream_handle(function, operation);
    const bool idle = times.stream_query(stream) == 0;
    pthread_mutex_lock(&times.lock);
    timing *one = place_for(&times.rings[context], thread);
    if (one != NULL && idle)
        know_a_time(&times.rings[context], stream);
    pthread_mutex_unlock(&times.lock);
    if (one == NULL)
        return;
    one->idle = idle;
    if (times.record(one->begin, stream) != 0) {
        end_turn(one, OVER);
        return;
    }
    one->begun = ffm_now();
    thread->timing = one;
}

/* A third event, if the GPU has not yet reached the second; 0 for none. It is never used twice. */
static event alone_behind(const timing *one, uint64_t stream)
{
    event found = 0;
    const uint32_t context = ffm_context_number();
    if (context >= TIMED_CONTEXTS || __atomic_load_n(&times.rings[context].alone, __ATOMIC_RELAXED) >= ALONE ||
        times.query(one->end) != ERROR_NOT_READY || times.create(&found, DEFAULT_FLAGS) != 0)
        return 0;
    __atomic_add_fetch(&times.rings[context].alone, 1, __ATOMIC_RELAXED);
    return times.record(found, stream) == 0 && times.query(one->end) == ERROR_NOT_READY ? found : 0;
}

/* The second event. Nothing is learned from calls that waited themselves, were refused, or mixed with other threads'
 * work. */
static void enqueued(const ffm_function *function, const ffm_operation *operation, uint64_t number, ffm_thread *thread)
{
    timing *one = thread->timing;
    one->operation = number;
    one->thread = thread->number;
    one->arrived = operation->start + operation->duration;
    bool alone = __atomic_load_n(latest_of(function, operation, thread), __ATOMIC_RELAXED) == thread->enqueued;
    const uint64_t stream = ffm_stream_handle(function, operation);
    bool timed = operation->result == 0 && operation->waits == 0 && !ffm_capturing() &&
                 times.record(one->end, stream) == 0 && alone;
    one->alone = timed ? alone_behind(one, stream) : 0;
    end_turn(one, timed ? ENQUEUED : OVER);
    thread->timing = NULL;
}

void ffm_gpu_times_after(const ffm_function *function, const ffm_operation *operation, uint64_t number,
                         ffm_thread *thread)
{
    if (thread->timing != NULL) {
        enqueued(function, operation, number, thread);
        return;
    }
    ffm_cover cover;
    if (!driver_can() || ffm_capturing() || !ffm_waited(function, operation, thread, &cover))
        return;
    uint32_t context = ffm_context_number();
    pthread_mutex_lock(&times.lock);
    if (context < TIMED_CONTEXTS)
        collect(&times.rings[context], thread);
    pthread_mutex_unlock(&times.lock);
}

void ffm_gpu_times_after_fork(void)
{
    pthread_mutex_init(&times.lock, NULL);
    for (uint32_t context = 0; context < TIMED_CONTEXTS; context++)
        times.rings[context] = (ring){0};
}
