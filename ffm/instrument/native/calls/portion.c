#include "portion.h"

#include <fnmatch.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "captures.h"
#include "clock.h"
#include "new_pages.h"

bool ffm_portion_is_limited;

/* One for each function of the catalogue, and for private waits. */
enum { PRIVATE = FFM_FUNCTION_COUNT, FUNCTIONS };

typedef struct {
    uint32_t calls, told; /* not recorded so far, and as of the last ffm_resumption */
} left_out;

static struct {
    ffm_portion wanted;
    char name[256];
    void (*opens)(void);
    void (*closes)(void);
    pthread_mutex_t lock; /* of everything below, which is read without it where a call may come too early or late */
    bool open, over;
    uint64_t first;      /* when the first call of the process began; 0 before */
    uint64_t calls;      /* counted */
    uint64_t iterations; /* marked with the name, begun */
    uint64_t current;    /* of these, the one that was begun last */
    ffm_stream stream;
    ffm_stretch *stretch; /* in the recording; NULL outside, or if the disk is full */
} portion = {.lock = PTHREAD_MUTEX_INITIALIZER};

void ffm_portion_limit(const ffm_portion *wanted, void (*opens)(void), void (*closes)(void))
{
    if (ffm_portion_is_limited || wanted->kind == FFM_PORTION_ALL)
        return;
    portion.wanted = *wanted;
    snprintf(portion.name, sizeof portion.name, "%s", wanted->name);
    portion.opens = opens;
    portion.closes = closes;
    ffm_portion_is_limited = true;
}

static bool is_open(void)
{
    return __atomic_load_n(&portion.open, __ATOMIC_ACQUIRE);
}

/* Locked, as are the next ones. */
static void note_stretch(uint64_t now, uint64_t calls)
{
    ffm_stretch *stretch = ffm_sink_reserve(&portion.stream, FFM_CHUNK_STRETCHES, 0, sizeof *stretch);
    if (stretch != NULL) {
        *stretch = (ffm_stretch){.opened = now, .calls = calls};
        stretch->judged = portion.wanted.kind == FFM_PORTION_ITERATIONS && portion.wanted.every > 1 ? 0 : now;
        stretch->iteration = portion.current;
        ffm_sink_commit(&portion.stream, sizeof *stretch);
    }
    portion.stretch = stretch;
}

static void open_now(uint64_t now, uint64_t calls)
{
    if (portion.open || portion.over)
        return;
    note_stretch(now, calls);
    portion.opens();
    __atomic_store_n(&portion.open, true, __ATOMIC_RELEASE);
}

static void close_now(uint64_t now, uint64_t calls)
{
    if (!portion.open)
        return;
    __atomic_store_n(&portion.open, false, __ATOMIC_RELEASE);
    portion.over = portion.wanted.kind != FFM_PORTION_ITERATIONS;
    if (portion.stretch != NULL) {
        portion.stretch->closed = now;
        if (portion.stretch->unjudged == 0)
            portion.stretch->unjudged = now;
        portion.stretch->calls_closed = calls;
        portion.stretch = NULL;
    }
    portion.closes();
}

/* A place in the window's unit; `calls` is how many counted calls the process had made before. */
static void follow_window(uint64_t place, uint64_t now, uint64_t calls)
{
    const bool inside = place >= portion.wanted.from && place < portion.wanted.until;
    if (inside == is_open() || __atomic_load_n(&portion.over, __ATOMIC_RELAXED))
        return;
    pthread_mutex_lock(&portion.lock);
    if (inside)
        open_now(now, calls);
    else if (place >= portion.wanted.until)
        close_now(now, calls);
    pthread_mutex_unlock(&portion.lock);
}

static bool counts(uint8_t kind)
{
    return kind == FFM_KIND_TRANSFER || kind == FFM_KIND_SET || kind == FFM_KIND_LAUNCH ||
           kind == FFM_KIND_SYNCHRONIZATION || kind == FFM_KIND_ALLOCATION || kind == FFM_KIND_FREE;
}

static bool can_be_left_out(uint8_t kind)
{
    return kind == FFM_KIND_TRANSFER || kind == FFM_KIND_SET || kind == FFM_KIND_LAUNCH ||
           kind == FFM_KIND_SYNCHRONIZATION || kind == FFM_KIND_QUERY || kind == FFM_KIND_TIMING ||
           kind == FFM_KIND_ORDER || kind == FFM_KIND_HOST_FUNCTION || kind == FFM_KIND_MIGRATION;
}

/* Returns false if memory is short: then the call is recorded. */
static bool leave_out(ffm_thread *thread, uint32_t place)
{
    if (thread->left_out == NULL) {
        thread->left_out = ffm_new_pages(FUNCTIONS * sizeof(left_out));
        if (thread->left_out == NULL)
            return false;
        thread->left_out_bytes = FUNCTIONS * sizeof(left_out);
    }
    ((left_out *)thread->left_out)[place].calls++;
    return true;
}

bool ffm_portion_takes(uint32_t function, ffm_thread *thread, uint64_t now)
{
    const uint8_t kind = ffm_catalogue[function].kind;
    const bool counted = counts(kind);
    const uint64_t calls = counted ? __atomic_fetch_add(&portion.calls, 1, __ATOMIC_RELAXED)
                                   : __atomic_load_n(&portion.calls, __ATOMIC_RELAXED);
    if (portion.wanted.kind == FFM_PORTION_TIME) {
        uint64_t none = 0;
        if (__atomic_load_n(&portion.first, __ATOMIC_RELAXED) == 0)
            __atomic_compare_exchange_n(&portion.first, &none, now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
        follow_window(now - __atomic_load_n(&portion.first, __ATOMIC_RELAXED), now, calls);
    } else if (portion.wanted.kind == FFM_PORTION_CALLS && counted) {
        follow_window(calls, now, calls);
    }
    return is_open() || !can_be_left_out(kind) || ffm_capturing() || !leave_out(thread, function);
}

bool ffm_portion_takes_private(ffm_thread *thread)
{
    return is_open() || !leave_out(thread, PRIVATE);
}

bool ffm_portion_takes_samples(void)
{
    return !ffm_portion_limited() || is_open();
}

void ffm_portion_passed(void)
{
    if (!is_open())
        return;
    pthread_mutex_lock(&portion.lock);
    if (portion.stretch != NULL)
        portion.stretch->settled = ffm_now();
    pthread_mutex_unlock(&portion.lock);
}

void ffm_portion_recording(uint32_t function, ffm_thread *thread)
{
    left_out *counters = thread->left_out;
    if (counters == NULL)
        return;
    left_out *counter = &counters[function == FFM_FUNCTION_PRIVATE ? PRIVATE : function];
    if (counter->calls == counter->told)
        return;
    ffm_resumption *out = ffm_sink_reserve(&thread->resumptions, FFM_CHUNK_RESUMPTIONS, thread->number, sizeof *out);
    if (out == NULL)
        return;
    *out = (ffm_resumption){
        .operation = thread->operations.stream.written, .left_out = counter->calls, .function = function};
    ffm_sink_commit(&thread->resumptions, sizeof *out);
    counter->told = counter->calls;
}

void ffm_portion_recorded(void)
{
    if (!is_open())
        portion.closes();
}

/* Of each `every` iterations, the second is judged; the first and the third show what lies at its edges. */
static void begin_iteration(uint64_t now)
{
    const uint64_t every = portion.wanted.every;
    portion.current = __atomic_fetch_add(&portion.iterations, 1, __ATOMIC_RELAXED);
    if (every == 1 || portion.current % every == 0)
        open_now(now, __atomic_load_n(&portion.calls, __ATOMIC_RELAXED));
    if (every > 1 && portion.current % every == 1 && portion.stretch != NULL) {
        portion.stretch->judged = now;
        portion.stretch->iteration = portion.current;
    }
}

static void end_iteration(uint64_t now)
{
    const uint64_t every = portion.wanted.every;
    if (portion.iterations == 0)
        return;
    if (every > 1 && portion.current % every == 1 && portion.stretch != NULL)
        portion.stretch->unjudged = now;
    if (every == 1 || portion.current % every == 2)
        close_now(now, __atomic_load_n(&portion.calls, __ATOMIC_RELAXED));
}

void ffm_portion_mark(const char *name, bool begins)
{
    if (!ffm_portion_is_limited || portion.wanted.kind != FFM_PORTION_ITERATIONS)
        return;
    if (portion.name[0] != '\0' && fnmatch(portion.name, name, FNM_NOESCAPE) != 0)
        return;
    const uint64_t now = ffm_now();
    pthread_mutex_lock(&portion.lock);
    if (begins)
        begin_iteration(now);
    else
        end_iteration(now);
    pthread_mutex_unlock(&portion.lock);
}

void ffm_portion_after_fork(void)
{
    if (!ffm_portion_is_limited)
        return;
    pthread_mutex_init(&portion.lock, NULL); /* another thread of the parent may have held it */
    ffm_sink_release(&portion.stream);
    portion.stream = (ffm_stream){0};
    portion.stretch = NULL;
    if (portion.open)
        note_stretch(ffm_now(), __atomic_load_n(&portion.calls, __ATOMIC_RELAXED));
}
