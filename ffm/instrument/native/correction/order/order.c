#include "order.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "counters.h"
#include "driver.h"
#include "effects.h"
#include "held.h"
#include "state.h"
#include "streams.h"

enum { ENDS = 64, DISABLE_TIMING = 2 };

typedef ffm_known_stream known_stream;

/* The end of the work on a stream that has since been destroyed: its work continues. */
typedef struct {
    ffm_handle event;
    bool pending; /* no stream has waited for it yet */
} stream_end;

static struct {
    stream_end ends[ENDS];
    ffm_handle barrier; /* recorded in place of work on the legacy stream */
    ffm_handle fence;   /* recorded by the last fence that is not implied: all earlier ones come before it */
    uint64_t fences;    /* number created */
    uint64_t recorded;  /* the last one that the event comes after; later ones are implied */
    uint64_t paid;      /* the last one that was waited for; all three are read without the lock, too */
    uint64_t work;      /* ffm_held_now at the last implied fence */
    bool unseen;        /* work may come to streams, or go on, by calls that are not seen */
    bool behind;        /* somebody waited for work beyond what an implied fence promised */
} order;

static pthread_once_t at_exit = PTHREAD_ONCE_INIT;

/* Record the event that implied fences have done without. It then comes after the work since, too. Locked. */
static bool record_implied(void)
{
    if (order.fences == order.recorded || order.fences == order.paid)
        return true;
    if (!ffm_context_enter())
        return false;
    const bool done = ffm_driver.event_record(order.fence, FFM_LEGACY_STREAM) == FFM_CUDA_SUCCESS;
    ffm_context_leave();
    if (done) {
        __atomic_store_n(&order.recorded, order.fences, __ATOMIC_RELAXED);
        ffm_counters->fences++;
    }
    return done;
}

/* Order a stream that is about to be used after everything that removed waits promised. True if nothing is promised.
 * Locked. */
static bool catch_up(uint64_t stream)
{
    return order.fences == order.paid ||
           (record_implied() && ffm_driver.stream_wait_event(stream, order.fence, 0) == FFM_CUDA_SUCCESS);
}

/* Locked. */
static void pay_up_to(uint64_t fence)
{
    if (fence > order.paid)
        __atomic_store_n(&order.paid, fence, __ATOMIC_RELAXED);
}

static void meet_own_stream(void)
{
    pthread_mutex_lock(&ffm_lock);
    ffm_streams_note_own();
    bool ordered = catch_up(FFM_PER_THREAD_STREAM);
    pthread_mutex_unlock(&ffm_lock);
    if (!ordered)
        ffm_stop(FFM_STOP_STREAMS);
}

uint64_t ffm_order_stream(uint64_t handle, bool per_thread)
{
    if (handle == 0)
        handle = per_thread ? FFM_PER_THREAD_STREAM : FFM_LEGACY_STREAM;
    if (__builtin_expect(handle == FFM_PER_THREAD_STREAM && !ffm_streams_own_noted(), 0))
        meet_own_stream();
    return handle;
}

static bool make_event(ffm_handle *event)
{
    return *event != 0 || ffm_driver.event_create(event, DISABLE_TIMING) == FFM_CUDA_SUCCESS;
}

static bool record(ffm_handle event, uint64_t stream)
{
    return ffm_driver.event_record(event, stream) == FFM_CUDA_SUCCESS;
}

static bool wait(uint64_t stream, ffm_handle event)
{
    return ffm_driver.stream_wait_event(stream, event, 0) == FFM_CUDA_SUCCESS;
}

/* Order the legacy stream after the work of destroyed streams. Locked. */
static bool gather_ends(void)
{
    for (uint32_t i = 0; i < ENDS; i++) {
        stream_end *end = &order.ends[i];
        if (end->pending && !wait(FFM_LEGACY_STREAM, end->event))
            return false;
        end->pending = false;
    }
    return true;
}

/* Note where the work of a stream that is about to be destroyed ends. Locked. */
static bool note_end(known_stream *gone)
{
    uint32_t place = 0;
    while (place < ENDS && order.ends[place].pending)
        place++;
    if (place == ENDS) {
        place = 0;
        if (ffm_state_capturing() || !gather_ends())
            return false;
    }
    if (!make_event(&gone->event) || !record(gone->event, gone->handle))
        return false;
    ffm_handle unused = order.ends[place].event;
    order.ends[place] = (stream_end){.event = gone->event, .pending = true};
    gone->event = unused;
    return true;
}

void ffm_order_stream_made(uint64_t stream, bool nonblocking)
{
    pthread_mutex_lock(&ffm_lock);
    bool room = ffm_streams_add(stream, nonblocking);
    bool ordered = catch_up(stream);
    pthread_mutex_unlock(&ffm_lock);
    if (!room || !ordered)
        ffm_stop(FFM_STOP_STREAMS);
}

void ffm_order_stream_gone(uint64_t stream)
{
    pthread_mutex_lock(&ffm_lock);
    known_stream *gone = ffm_streams_find(stream);
    bool noted = gone == NULL || ffm_stopped() || note_end(gone);
    if (gone != NULL) {
        ffm_effects_stream_gone(stream);
        ffm_streams_remove(gone);
    }
    pthread_mutex_unlock(&ffm_lock);
    if (!noted)
        ffm_stop(FFM_STOP_STREAMS);
}

ffm_order_mark ffm_order_now(void)
{
    return (ffm_order_mark){ffm_effects_now(), __atomic_load_n(&order.fences, __ATOMIC_ACQUIRE)};
}

void ffm_order_waited(ffm_scope scope, uint64_t stream, ffm_order_mark before)
{
    pthread_mutex_lock(&ffm_lock);
    if (scope == FFM_SCOPE_CONTEXT) {
        ffm_effects_over(0, before.effects);
        pay_up_to(before.fences);
    } else if (scope == FFM_SCOPE_STREAM && ffm_streams_may_ask(stream)) {
        ffm_effects_over(stream, before.effects);
    }
    pthread_mutex_unlock(&ffm_lock);
}

/* Order the legacy stream after all non-blocking streams. It comes after blocking streams by itself, while they
 * exist. */
static bool gather(void)
{
    if (!gather_ends())
        return false;
    uint32_t count;
    known_stream *made = ffm_streams_made(&count);
    for (uint32_t i = 0; i < count; i++) {
        known_stream *stream = &made[i];
        if (stream->nonblocking && !(make_event(&stream->event) && record(stream->event, stream->handle) &&
                                     wait(FFM_LEGACY_STREAM, stream->event)))
            return false;
    }
    return true;
}

/* Make other streams wait for the fence's event. `all`: including blocking ones, which need no wait if the event was
 * recorded on the legacy stream. */
static bool spread(bool all, uint64_t except)
{
    uint32_t count;
    const known_stream *made = ffm_streams_made(&count);
    for (uint32_t i = 0; i < count; i++) {
        const known_stream *stream = &made[i];
        if (stream->handle != except && (all || stream->nonblocking) && !wait(stream->handle, order.fence))
            return false;
    }
    return true;
}

static bool fence_on_legacy(void)
{
    return record(order.fence, FFM_LEGACY_STREAM) && spread(false, 0);
}

static bool fence(ffm_scope scope, uint64_t handle)
{
    if (scope == FFM_SCOPE_CONTEXT)
        return gather() && fence_on_legacy();
    if (scope == FFM_SCOPE_EVENT)
        return wait(FFM_LEGACY_STREAM, handle) && fence_on_legacy();
    if (handle == FFM_LEGACY_STREAM)
        return fence_on_legacy();
    const known_stream *stream = ffm_streams_find(handle);
    if (stream == NULL && handle != FFM_PER_THREAD_STREAM)
        return false;
    if (stream != NULL && stream->nonblocking)
        return record(order.fence, handle) && spread(true, handle) && wait(FFM_LEGACY_STREAM, order.fence);
    /* No thread can order another thread's default stream: only the legacy stream reaches them all. */
    if (ffm_streams_of_threads() > (handle == FFM_PER_THREAD_STREAM))
        return fence_on_legacy();
    return record(order.fence, handle) && spread(true, handle);
}

/* Events may be another process's, so that a wait for one is always kept. Locked. */
static bool is_implied(ffm_scope scope, uint64_t handle)
{
    return ffm_context_known() && ffm_streams_only_legacy() && !order.unseen && !order.behind &&
           (scope == FFM_SCOPE_CONTEXT || (scope == FFM_SCOPE_STREAM && handle == FFM_LEGACY_STREAM));
}

/* Locked. */
static bool keep_order(ffm_scope scope, uint64_t handle)
{
    const bool implied = is_implied(scope, handle);
    if (!implied && !fence(scope, handle))
        return false;
    const uint64_t made = order.fences + 1;
    if (implied)
        order.work = ffm_held_now();
    else
        __atomic_store_n(&order.recorded, made, __ATOMIC_RELAXED);
    __atomic_store_n(&order.fences, made, __ATOMIC_RELEASE);
    ffm_counters->fences += !implied;
    return true;
}

/* A program that waited for its last work must not end before that work: a kernel may still print. */
static void pay_at_exit(void)
{
    atexit(ffm_order_pay);
}

bool ffm_order_fence(ffm_scope scope, uint64_t handle)
{
    pthread_once(&at_exit, pay_at_exit);
    pthread_mutex_lock(&ffm_lock);
    /* No capture begins while the lock is held, and none may see the events of a fence. */
    bool done = !ffm_state_capturing() && make_event(&order.fence) && keep_order(scope, handle);
    pthread_mutex_unlock(&ffm_lock);
    return done;
}

void ffm_order_record(void)
{
    if (__atomic_load_n(&order.fences, __ATOMIC_RELAXED) == __atomic_load_n(&order.recorded, __ATOMIC_RELAXED))
        return;
    pthread_mutex_lock(&ffm_lock);
    const bool recorded = record_implied();
    pthread_mutex_unlock(&ffm_lock);
    if (!recorded)
        ffm_stop(FFM_STOP_STREAMS);
}

void ffm_order_unseen(void)
{
    pthread_mutex_lock(&ffm_lock);
    order.unseen = true;
    pthread_mutex_unlock(&ffm_lock);
    ffm_order_record();
}

bool ffm_order_after_all(uint64_t stream)
{
    pthread_mutex_lock(&ffm_lock);
    bool after = stream == FFM_LEGACY_STREAM && !ffm_streams_had_nonblocking();
    pthread_mutex_unlock(&ffm_lock);
    return after;
}

/* What the legacy stream comes after: the blocking streams, including the threads' own, and the destroyed ones. */
static bool blocking_streams_are_idle(void)
{
    uint32_t count;
    const known_stream *made = ffm_streams_made(&count);
    bool idle = ffm_streams_of_threads() == 0 || ffm_streams_idle(FFM_PER_THREAD_STREAM);
    for (uint32_t i = 0; i < count && idle; i++)
        idle = made[i].nonblocking || ffm_streams_idle(made[i].handle);
    for (uint32_t i = 0; i < ENDS && idle; i++)
        idle = !order.ends[i].pending || ffm_driver.event_query(order.ends[i].event) == FFM_CUDA_SUCCESS;
    return idle;
}

bool ffm_order_begins_at_once(uint64_t stream)
{
    pthread_mutex_lock(&ffm_lock);
    bool idle = !ffm_state_capturing() && ffm_streams_know(stream) && ffm_streams_idle(stream);
    const known_stream *made = ffm_streams_find(stream);
    if (idle && stream == FFM_LEGACY_STREAM)
        idle = blocking_streams_are_idle();
    else if (idle && (made == NULL || !made->nonblocking))
        idle = ffm_streams_idle(FFM_LEGACY_STREAM);
    pthread_mutex_unlock(&ffm_lock);
    return idle;
}

bool ffm_order_barrier(void)
{
    pthread_mutex_lock(&ffm_lock);
    bool done = !ffm_state_capturing() && make_event(&order.barrier) && record(order.barrier, FFM_LEGACY_STREAM);
    pthread_mutex_unlock(&ffm_lock);
    return done;
}

bool ffm_order_owes(void)
{
    return __atomic_load_n(&order.fences, __ATOMIC_RELAXED) != __atomic_load_n(&order.paid, __ATOMIC_RELAXED);
}

/* Whether work that came after an implied fence is still under way: the fence's event would come after it, too.
 * Locked. */
static bool is_behind(void)
{
    if (order.fences == order.recorded || ffm_held_now() == order.work || !ffm_context_enter())
        return false;
    const bool busy = !ffm_streams_idle(FFM_LEGACY_STREAM);
    ffm_context_leave();
    return busy;
}

void ffm_order_pay(void)
{
    pthread_mutex_lock(&ffm_lock);
    uint64_t made = order.fences;
    if (made != order.paid) {
        order.behind = order.behind || is_behind();
        record_implied(); /* fails only in a context that is lost, and all work with it */
    }
    ffm_handle event = made != order.paid ? order.fence : 0;
    pthread_mutex_unlock(&ffm_lock);
    if (event == 0)
        return;
    const int result = ffm_driver.event_synchronize(event);
    pthread_mutex_lock(&ffm_lock);
    pay_up_to(made);
    pthread_mutex_unlock(&ffm_lock);
    ffm_state_answered(result);
}

void ffm_order_forget(void)
{
    pthread_mutex_lock(&ffm_lock);
    ffm_streams_forget();
    memset(order.ends, 0, sizeof order.ends);
    ffm_effects_forget();
    order.fence = order.barrier = 0;
    order.recorded = order.fences;
    pay_up_to(order.fences);
    pthread_mutex_unlock(&ffm_lock);
}
