#include "order.h"

#include <stddef.h>

#include "counters.h"
#include "downloads.h"
#include "driver.h"
#include "state.h"

enum { STREAMS = 256, TRANSFERS = 64, DISABLE_TIMING = 2 };

typedef struct {
    uint64_t handle;
    bool nonblocking;
    ffm_handle event; /* made when first needed */
    uint64_t effects; /* number of the last effect on it, 0 where none is under way */
} known_stream;

/* A transfer under way on host memory. */
typedef struct {
    uint64_t number; /* of the effect */
    uint64_t stream, start;
    size_t bytes;
    bool source;
} transfer_effect;

static struct {
    transfer_effect transfers[TRANSFERS];
    uint32_t transfer_count;
    known_stream made[STREAMS];
    uint32_t count;
    known_stream legacy, per_thread;
    bool had_nonblocking;  /* some stream was non-blocking, even if it is gone */
    uint64_t orphans;      /* effects on streams that were destroyed since */
    uint64_t effects;      /* numbers given out */
    uint32_t thread_count; /* threads that used their own default stream */
    ffm_handle fence;      /* recorded by the last fence: all earlier ones lie before it */
    uint64_t fences;       /* made */
    uint64_t paid;         /* the last one that was waited for */
} order;

/* Streams of threads are counted by generation, so that a child or a new context counts them anew. */
static uint32_t generation = 1;
static __thread uint32_t own_stream_generation __attribute__((tls_model("initial-exec")));

/* Put a stream that comes into use behind all that removed waits promised. True where nothing is promised. Locked. */
static bool catch_up(uint64_t stream)
{
    return order.fences == order.paid || ffm_driver.stream_wait_event(stream, order.fence, 0) == FFM_CUDA_SUCCESS;
}

static void meet_own_stream(void)
{
    own_stream_generation = generation;
    pthread_mutex_lock(&ffm_lock);
    order.thread_count++;
    bool ordered = catch_up(FFM_PER_THREAD_STREAM);
    pthread_mutex_unlock(&ffm_lock);
    if (!ordered)
        ffm_stop(FFM_STOP_STREAMS);
}

uint64_t ffm_order_stream(uint64_t handle, bool per_thread)
{
    if (handle == 0)
        handle = per_thread ? FFM_PER_THREAD_STREAM : FFM_LEGACY_STREAM;
    if (__builtin_expect(handle == FFM_PER_THREAD_STREAM && own_stream_generation != generation, 0))
        meet_own_stream();
    return handle;
}

static known_stream *find(uint64_t handle)
{
    if (handle == FFM_LEGACY_STREAM)
        return &order.legacy;
    if (handle == FFM_PER_THREAD_STREAM)
        return &order.per_thread;
    for (uint32_t i = 0; i < order.count; i++)
        if (order.made[i].handle == handle)
            return &order.made[i];
    return NULL;
}

void ffm_order_stream_made(uint64_t stream, bool nonblocking)
{
    pthread_mutex_lock(&ffm_lock);
    bool room = order.count < STREAMS;
    order.had_nonblocking = order.had_nonblocking || nonblocking;
    if (room)
        order.made[order.count++] = (known_stream){.handle = stream, .nonblocking = nonblocking};
    bool ordered = catch_up(stream);
    pthread_mutex_unlock(&ffm_lock);
    if (!room || !ordered)
        ffm_stop(FFM_STOP_STREAMS);
}

void ffm_order_stream_gone(uint64_t stream)
{
    pthread_mutex_lock(&ffm_lock);
    known_stream *gone = stream > FFM_PER_THREAD_STREAM ? find(stream) : NULL;
    if (gone != NULL) {
        if (gone->effects > order.orphans)
            order.orphans = gone->effects;
        for (uint32_t i = order.transfer_count; i > 0; i--) {
            if (order.transfers[i - 1].stream != stream)
                continue;
            if (order.transfers[i - 1].number > order.orphans)
                order.orphans = order.transfers[i - 1].number;
            order.transfers[i - 1] = order.transfers[--order.transfer_count];
        }
        ffm_handle event = gone->event;
        *gone = order.made[--order.count];
        order.made[order.count] = (known_stream){.event = event}; /* for the next stream */
    }
    pthread_mutex_unlock(&ffm_lock);
}

void ffm_order_effect(uint64_t stream)
{
    pthread_mutex_lock(&ffm_lock);
    known_stream *on = find(stream);
    uint64_t number = ++order.effects;
    if (on != NULL)
        on->effects = number;
    else
        order.orphans = number;
    pthread_mutex_unlock(&ffm_lock);
}

void ffm_order_transfer_effect(uint64_t stream, uint64_t start, size_t bytes, bool source)
{
    pthread_mutex_lock(&ffm_lock);
    bool room = order.transfer_count < TRANSFERS;
    if (room)
        order.transfers[order.transfer_count++] = (transfer_effect){++order.effects, stream, start, bytes, source};
    pthread_mutex_unlock(&ffm_lock);
    if (!room)
        ffm_order_effect(stream);
}

/* Transfers up to an effect, on a stream or (0) on all, are done. Locked. */
static void settle_transfers(uint64_t stream, uint64_t last)
{
    for (uint32_t i = order.transfer_count; i > 0; i--) {
        const transfer_effect *at = &order.transfers[i - 1];
        if (at->number <= last && (stream == 0 || at->stream == stream))
            order.transfers[i - 1] = order.transfers[--order.transfer_count];
    }
}

ffm_order_mark ffm_order_now(void)
{
    return (ffm_order_mark){__atomic_load_n(&order.effects, __ATOMIC_ACQUIRE),
                            __atomic_load_n(&order.fences, __ATOMIC_ACQUIRE)};
}

static void settle(known_stream *stream, ffm_order_mark before)
{
    if (stream->effects <= before.effects)
        stream->effects = 0;
}

void ffm_order_waited(ffm_scope scope, uint64_t stream, ffm_order_mark before)
{
    pthread_mutex_lock(&ffm_lock);
    if (scope == FFM_SCOPE_CONTEXT) {
        for (uint32_t i = 0; i < order.count; i++)
            settle(&order.made[i], before);
        settle(&order.legacy, before);
        settle(&order.per_thread, before);
        settle_transfers(0, before.effects);
        if (order.orphans <= before.effects)
            order.orphans = 0;
        if (before.fences > order.paid)
            order.paid = before.fences;
    } else if (scope == FFM_SCOPE_STREAM) {
        known_stream *waited = find(stream);
        /* A thread's wait for its own default stream says nothing of the others'. */
        if (waited != NULL && (waited != &order.per_thread || order.thread_count <= 1)) {
            settle(waited, before);
            settle_transfers(stream, before.effects);
        }
    }
    pthread_mutex_unlock(&ffm_lock);
}

/* Whether effects on a stream are still under way; asks the driver. */
static bool busy(known_stream *stream, uint64_t handle)
{
    if (stream->effects == 0)
        return false;
    /* Only its own thread can ask for a thread's default stream. */
    if (stream == &order.per_thread && (order.thread_count > 1 || own_stream_generation != generation))
        return true;
    if (ffm_driver.stream_query(handle) != FFM_CUDA_SUCCESS)
        return true;
    stream->effects = 0;
    return false;
}

/* Transfers on streams that this thread may not ask are left as they are. Locked. */
static bool is_own(uint64_t stream)
{
    return stream != FFM_PER_THREAD_STREAM || (order.thread_count <= 1 && own_stream_generation == generation);
}

/* Close what a transfer works on, without the lock: where that waits, others go on. */
static bool close_transfer(const transfer_effect *under_way)
{
    if (!ffm_downloads_close_transfer(under_way->start, under_way->bytes, under_way->source, under_way->stream))
        return false;
    pthread_mutex_lock(&ffm_lock);
    for (uint32_t i = order.transfer_count; i > 0; i--)
        if (order.transfers[i - 1].number == under_way->number)
            order.transfers[i - 1] = order.transfers[--order.transfer_count];
    pthread_mutex_unlock(&ffm_lock);
    return true;
}

bool ffm_order_has_effects(void)
{
    transfer_effect under_way[TRANSFERS];
    pthread_mutex_lock(&ffm_lock);
    bool found =
        order.orphans != 0 || busy(&order.legacy, FFM_LEGACY_STREAM) || busy(&order.per_thread, FFM_PER_THREAD_STREAM);
    for (uint32_t i = 0; i < order.count && !found; i++)
        found = busy(&order.made[i], order.made[i].handle);
    for (uint32_t i = order.transfer_count; i > 0 && !found; i--) {
        const transfer_effect *at = &order.transfers[i - 1];
        found = !is_own(at->stream);
        if (!found && ffm_driver.stream_query(at->stream) == FFM_CUDA_SUCCESS)
            order.transfers[i - 1] = order.transfers[--order.transfer_count];
    }
    uint32_t count = found ? 0 : order.transfer_count;
    for (uint32_t i = 0; i < count; i++)
        under_way[i] = order.transfers[i];
    pthread_mutex_unlock(&ffm_lock);
    for (uint32_t i = 0; i < count && !found; i++)
        found = !close_transfer(&under_way[i]);
    return found;
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

/* Put the legacy stream behind all non-blocking streams. Blocking ones it is behind by itself. */
static bool gather(void)
{
    for (uint32_t i = 0; i < order.count; i++) {
        known_stream *stream = &order.made[i];
        if (stream->nonblocking && !(make_event(&stream->event) && record(stream->event, stream->handle) &&
                                     wait(FFM_LEGACY_STREAM, stream->event)))
            return false;
    }
    return true;
}

/* Make other streams wait for the fence's event. `all`: blocking ones too, which a record on the legacy stream does
 * not need. */
static bool spread(bool all, uint64_t except)
{
    for (uint32_t i = 0; i < order.count; i++) {
        const known_stream *stream = &order.made[i];
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
    const known_stream *stream = find(handle);
    if (stream == NULL)
        return false;
    if (stream->nonblocking)
        return record(order.fence, handle) && spread(true, handle) && wait(FFM_LEGACY_STREAM, order.fence);
    /* No thread can put an order into another thread's default stream: only the legacy stream reaches them all. */
    if (order.thread_count > (handle == FFM_PER_THREAD_STREAM))
        return fence_on_legacy();
    return record(order.fence, handle) && spread(true, handle);
}

bool ffm_order_fence(ffm_scope scope, uint64_t handle)
{
    pthread_mutex_lock(&ffm_lock);
    bool done = make_event(&order.fence) && fence(scope, handle);
    if (done) {
        order.fences++;
        ffm_counters->fences++;
    }
    pthread_mutex_unlock(&ffm_lock);
    return done;
}

bool ffm_order_after_all(uint64_t stream)
{
    pthread_mutex_lock(&ffm_lock);
    bool after = stream == FFM_LEGACY_STREAM && !order.had_nonblocking;
    pthread_mutex_unlock(&ffm_lock);
    return after;
}

bool ffm_order_owes(void)
{
    return __atomic_load_n(&order.fences, __ATOMIC_RELAXED) != __atomic_load_n(&order.paid, __ATOMIC_RELAXED);
}

void ffm_order_pay(void)
{
    pthread_mutex_lock(&ffm_lock);
    uint64_t made = order.fences;
    ffm_handle event = order.fence;
    pthread_mutex_unlock(&ffm_lock);
    if (made == order.paid || event == 0)
        return;
    ffm_driver.event_synchronize(event);
    pthread_mutex_lock(&ffm_lock);
    if (made > order.paid)
        order.paid = made;
    pthread_mutex_unlock(&ffm_lock);
}

void ffm_order_forget(void)
{
    pthread_mutex_lock(&ffm_lock);
    order.count = 0;
    order.transfer_count = 0;
    for (uint32_t i = 0; i < STREAMS; i++)
        order.made[i] = (known_stream){0};
    order.legacy = order.per_thread = (known_stream){0};
    order.orphans = 0;
    order.had_nonblocking = false;
    order.thread_count = 0;
    order.fence = 0;
    order.paid = order.fences;
    generation++;
    pthread_mutex_unlock(&ffm_lock);
}
