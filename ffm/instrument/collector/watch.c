#define UNW_LOCAL_ONLY
#include "watch.h"

#include <libunwind.h>
#include <string.h>

#include "blocks.h"
#include "clock.h"
#include "dispatch.h"
#include "faults.h"
#include "kernels.h"
#include "mappings.h"
#include "stacks.h"
#include "thread_memory.h"
#include "trace.h"
#include "waits.h"

enum { SUSPENDED = 16, SEPARATE_ROWS = 64, PAGE = 4096, DORMANT_RANGES = 2048 };
enum { BRIEF = 50000 }; /* nanoseconds; a system call that does not sleep takes less */

static struct {
    const uint8_t *plan;
    uint64_t keys;
    ffm_stream accesses; /* of the whole process: any thread can touch */
    uint64_t waiters;    /* one bit for each thread that has waited */
    uint64_t waits;      /* ended so far, records of events included */
    bool inherited;      /* this is a forked child: what is watched is the parent's */
    uint64_t forked;
} watch;

static uint64_t bit(const ffm_thread *thread)
{
    return 1ULL << (thread->number & 63);
}

static bool several_wait(void)
{
    return (watch.waiters & (watch.waiters - 1)) != 0;
}

bool ffm_watch_wants_stacks(void)
{
    return watch.plan == NULL;
}

static void record(const ffm_range *range, uint32_t kind, uint32_t flags, uint64_t address, uint64_t time,
                   uint32_t stack)
{
    if (watch.inherited && time > watch.forked)
        time = watch.forked; /* the child sees the memory as it was then */
    const ffm_thread *thread = ffm_thread_peek();
    ffm_access *out = ffm_sink_reserve(&watch.accesses, FFM_CHUNK_ACCESSES, 0, sizeof *out);
    if (out == NULL)
        return;
    *out = (ffm_access){.time = time,
                        .address = address,
                        .operation = range->operation,
                        .armed = range->armed,
                        .operation_thread = range->thread,
                        .stack = stack,
                        .kind = (uint16_t)kind,
                        .flags = (uint16_t)(flags | (watch.inherited ? FFM_ACCESS_INHERITED : 0)),
                        .thread_id = thread == NULL ? 0 : thread->kernel_id};
    ffm_sink_commit(&watch.accesses, sizeof *out);
}

static bool same_rows(const ffm_box *one, const ffm_box *other)
{
    return one->address == other->address && one->width == other->width && one->height == other->height &&
           one->depth == other->depth && one->pitch == other->pitch && one->slice == other->slice;
}

void ffm_watch_touched(uint32_t place, uint32_t kind, uint64_t address, uint64_t time, uint32_t stack)
{
    ffm_range *range = ffm_ranges_at(place);
    bool last = range->covered && !several_wait();
    if (last || kind == FFM_ACCESS_RELEASED || kind == FFM_ACCESS_UNWATCHED || watch.inherited) {
        record(range, kind, FFM_ACCESS_LAST, address, time, stack);
        ffm_ranges_remove(place);
        return;
    }
    record(range, kind, 0, address, time, stack);
    if (range->covered) {
        range->done |= range->waited;
        ffm_ranges_disarm(range, FFM_RANGE_DORMANT);
    } else {
        ffm_ranges_disarm(range, FFM_RANGE_PENDING);
    }
}

void ffm_watch_give_up(const ffm_page *page, uint64_t time)
{
    for (uint32_t i = ffm_ranges_count(); i > 0; i--) {
        const ffm_range *range = ffm_ranges_at(i - 1);
        if (range->state == FFM_RANGE_ARMED && range->start < page->start + page->bytes && page->start < range->end)
            ffm_watch_touched(i - 1, FFM_ACCESS_UNWATCHED, page->start, time, 0);
    }
}

/* ---- what operations read and write ------------------------------------------------------------------------------ */

static bool planned(uint32_t stack)
{
    if (watch.plan == NULL)
        return true;
    const uint8_t *key = ffm_stack_key(stack);
    for (uint64_t i = 0; i < watch.keys; i++)
        if (memcmp(watch.plan + i * FFM_KEY_BYTES, key, FFM_KEY_BYTES) == 0)
            return true;
    return false;
}

/* The CPU touches [start, end) now, in a way that no fault tells. */
static void touch(uint64_t start, uint64_t end, bool writing, uint32_t kind, uint32_t stack)
{
    uint64_t now = ffm_now();
    for (uint32_t i = ffm_ranges_count(); i > 0; i--) {
        const ffm_range *range = ffm_ranges_at(i - 1);
        if (range->state == FFM_RANGE_ARMED && (writing || !range->writes_only) &&
            ffm_box_touches(&range->box, start, end))
            ffm_watch_touched(i - 1, kind, start > range->start ? start : range->start, now, stack);
    }
}

/* What was to arrive in [start, end), or to be read from there, is over or gone. */
static void cut(uint64_t start, uint64_t end)
{
    for (uint32_t i = ffm_ranges_count(); i > 0; i--) {
        const ffm_range *range = ffm_ranges_at(i - 1);
        if (range->start < end && start < range->end)
            ffm_ranges_cut(i - 1, start, end);
    }
}

static void cut_box(const ffm_box *box)
{
    if (box->height == 1 && box->depth == 1) {
        cut(box->address, ffm_box_end(box));
        return;
    }
    for (uint32_t i = ffm_ranges_count(); i > 0; i--)
        if (same_rows(&ffm_ranges_at(i - 1)->box, box))
            ffm_ranges_remove(i - 1);
}

static void before_copy(const ffm_copy *copy, const ffm_operation *operation)
{
    if (copy->destination.host && copy->destination.address != 0)
        cut_box(&copy->destination);
    /* From pageable memory, and between places of the host, the driver copies on the CPU. */
    bool on_cpu = !ffm_blocks_hold(copy->source.address) || copy->destination.host;
    if (copy->source.host && copy->source.address != 0 && on_cpu)
        touch(copy->source.address, ffm_box_end(&copy->source), false, FFM_ACCESS_DRIVER, operation->stack);
}

/* The system pins the pages of memory that is registered, and would refuse protected ones. */
static bool registers(const ffm_function *function)
{
    return function->kind == FFM_KIND_ALLOCATION && function->memory == FFM_MEMORY_REGISTERED;
}

/* While the driver works on pages that are open for it, its own system calls must not protect them again. */
static __thread bool opened __attribute__((tls_model("initial-exec")));

static void suspend(uint64_t start, uint64_t end, bool writing);

static void set_aside(uint64_t start, uint64_t end)
{
    if (!ffm_ranges_overlap(start, end))
        return;
    ffm_ranges_lock();
    suspend(start, end, true);
    ffm_ranges_unlock();
    opened = true;
}

/* What the driver copies on the CPU it would have to be stepped through on pages that it shares with watched ranges:
 * ten microseconds for each vector of a copy. A program with one thread touches nothing meanwhile. */
static void open_beside(const ffm_copy *copy)
{
    if (ffm_dispatch_threads() > 1)
        return;
    if (copy->source.host && copy->source.address != 0)
        set_aside(copy->source.address, ffm_box_end(&copy->source));
    if (copy->destination.host && copy->destination.address != 0)
        set_aside(copy->destination.address, ffm_box_end(&copy->destination));
}

void ffm_watch_before(const ffm_function *function, const uint64_t *arguments, const ffm_operation *operation,
                      ffm_thread *thread)
{
    if (!thread->memory_known) {
        ffm_thread_memory_here();
        thread->memory_known = true;
    }
    /* Freed by the driver: it waits itself. Unregistered memory stays the program's. */
    if (function->kind == FFM_KIND_FREE && operation->destination != 0) {
        uint64_t bytes = ffm_blocks_remove(operation->destination);
        if (bytes != 0 && function->memory != FFM_MEMORY_REGISTERED && ffm_watch_active()) {
            ffm_ranges_lock();
            cut(operation->destination, operation->destination + bytes);
            ffm_ranges_unlock();
        }
        return;
    }
    if (!ffm_watch_active())
        return;
    if (registers(function)) {
        set_aside(operation->destination, operation->destination + operation->bytes);
        return;
    }
    ffm_copy copy;
    for (uint32_t place = 0; ffm_copy_of(function, arguments, operation, place, &copy); place++) {
        ffm_ranges_lock();
        before_copy(&copy, operation);
        ffm_ranges_unlock();
        open_beside(&copy);
    }
}

/* The earlier of two ranges tells nothing that the later one does not: they are the same memory on the same stream, and
 * no wait can have come between. Or the later one is done after it, and both are only read. */
static void drop_equal(const ffm_range *range)
{
    for (uint32_t i = ffm_ranges_count(); i > 0; i--) {
        const ffm_range *other = ffm_ranges_at(i - 1);
        if (other->stream == range->stream && other->launch == range->launch &&
            other->writes_only == range->writes_only && same_rows(&other->box, &range->box) &&
            (range->writes_only || (other->state == FFM_RANGE_PENDING && other->waits == range->waits)))
            ffm_ranges_remove(i - 1);
    }
}

/* Memory that may not be protected, since a thread runs on it, or is seen elsewhere too. Not under the lock. */
static bool unwatchable(const ffm_box *box)
{
    uint64_t end = ffm_box_end(box);
    return ffm_thread_memory_holds(box->address, end) ||
           (!ffm_blocks_own_pages(box->address) && ffm_mappings_shared(box->address, end));
}

static void add(ffm_range *range, bool watchable, uint32_t stack)
{
    range->waits = watch.waits;
    if (range->launch || range->writes_only)
        drop_equal(range);
    if (!watchable || !ffm_ranges_add(range))
        record(range, FFM_ACCESS_UNWATCHED, FFM_ACCESS_LAST, range->box.address, ffm_now(), stack);
}

/* Rows with whole pages between them are watched one by one, so that the gaps stay open. */
static void add_box(ffm_range *range, uint32_t stack)
{
    ffm_box box = range->box;
    bool watchable = !unwatchable(&box);
    ffm_ranges_lock();
    if (box.depth > 1 || box.height > SEPARATE_ROWS || box.pitch < box.width + 2 * PAGE) {
        add(range, watchable, stack);
    } else {
        for (uint64_t row = 0; row < box.height; row++) {
            range->box = (ffm_box){box.address + row * box.pitch, box.width, box.width, 1, box.width, 1, true};
            add(range, watchable, stack);
        }
    }
    ffm_ranges_unlock();
}

static void add_copy(const ffm_function *function, const ffm_copy *copy, ffm_range *range, uint32_t stack)
{
    if (copy->destination.host && copy->destination.address != 0) {
        range->box = copy->destination;
        range->writes_only = false;
        add_box(range, stack);
    }
    /* A pageable source is staged when the call returns: the CPU may write it at once. */
    if (copy->source.host && copy->source.address != 0 && ffm_blocks_hold(copy->source.address)) {
        range->box = copy->source;
        range->writes_only = true;
        if (function->direction != FFM_DIRECTION_GENERIC || !copy->destination.host || function->asynchronous)
            add_box(range, stack);
    }
}

static void add_work(const ffm_function *function, const uint64_t *arguments, const ffm_operation *operation,
                     uint64_t number, const ffm_thread *thread)
{
    ffm_range range = {.operation = number,
                       .thread = thread->number,
                       .stream = ffm_stream_key(function, operation, thread),
                       .issued = operation->start};
    if (function->kind == FFM_KIND_LAUNCH) {
        range.launch = true;
        ffm_block block;
        ffm_kernel_reach reach = {0};
        ffm_kernel_begin(&reach, function, arguments);
        while (ffm_kernel_next(&reach, &block)) {
            range.box = (ffm_box){block.start, block.bytes, block.bytes, 1, block.bytes, 1, true};
            add_box(&range, operation->stack);
        }
        return;
    }
    if (operation->flags & FFM_OPERATION_ON_CPU)
        return;
    ffm_copy copy;
    for (uint32_t place = 0; ffm_copy_of(function, arguments, operation, place, &copy); place++) {
        if (!copy.source.host && !copy.destination.host)
            continue;
        add_copy(function, &copy, &range, operation->stack);
    }
}

/* ---- waits ------------------------------------------------------------------------------------------------------- */

/* The oldest of many ranges that are only kept for other threads' waits is given up. */
static void forget_dormant(void)
{
    uint32_t dormant = 0, oldest = 0;
    for (uint32_t i = 0; i < ffm_ranges_count(); i++) {
        if (ffm_ranges_at(i)->state != FFM_RANGE_DORMANT)
            continue;
        if (dormant++ == 0 || ffm_ranges_at(i)->issued < ffm_ranges_at(oldest)->issued)
            oldest = i;
    }
    if (dormant > DORMANT_RANGES)
        ffm_watch_touched(oldest, FFM_ACCESS_UNWATCHED, ffm_ranges_at(oldest)->start, ffm_now(), 0);
}

/* A covered range of a launch makes the earlier ones of its block and stream superfluous: the same waits cover them. */
static bool superseded(const ffm_range *range)
{
    for (uint32_t i = 0; i < ffm_ranges_count(); i++) {
        const ffm_range *other = ffm_ranges_at(i);
        if (other->launch && other->covered && other->stream == range->stream && other->issued > range->issued &&
            same_rows(&other->box, &range->box))
            return true;
    }
    return false;
}

static bool wants_arming(const ffm_range *range, bool covers, const ffm_thread *thread)
{
    if (range->state == FFM_RANGE_PENDING)
        return true;
    return range->state == FFM_RANGE_DORMANT && covers && (range->done & bit(thread)) == 0;
}

static void wait_ended(const ffm_cover *cover, const ffm_thread *thread)
{
    __atomic_add_fetch(&watch.waits, 1, __ATOMIC_RELAXED);
    __atomic_or_fetch(&watch.waiters, bit(thread), __ATOMIC_RELAXED);
    if (!ffm_watch_active())
        return;
    ffm_ranges_lock();
    for (uint32_t i = ffm_ranges_count(); i > 0; i--) {
        ffm_range *range = ffm_ranges_at(i - 1);
        bool covers = ffm_covers(cover, range->stream, range->issued);
        if (covers) {
            range->covered = true;
            range->waited |= bit(thread);
        }
        if (range->launch && superseded(range)) {
            ffm_ranges_remove(i - 1);
        } else if (wants_arming(range, covers, thread)) {
            range->armed = 0;
            if (!ffm_ranges_arm(range))
                ffm_watch_touched(i - 1, FFM_ACCESS_UNWATCHED, range->start, ffm_now(), 0);
        }
    }
    if (several_wait())
        forget_dormant();
    uint64_t resumed = ffm_now();
    for (uint32_t i = 0; i < ffm_ranges_count(); i++)
        if (ffm_ranges_at(i)->armed == 0)
            ffm_ranges_at(i)->armed = resumed;
    ffm_ranges_unlock();
}

void ffm_watch_private_wait(ffm_thread *thread)
{
    const ffm_cover nothing_certain = {.before = 0};
    wait_ended(&nothing_certain, thread);
}

static bool adds_work(const ffm_function *function, const ffm_operation *operation)
{
    switch (function->kind) {
    case FFM_KIND_TRANSFER:
    case FFM_KIND_SET:
        return operation->result == 0 && planned(operation->stack);
    case FFM_KIND_LAUNCH:
        return operation->result == 0 && ffm_blocks_count() != 0 && planned(operation->stack);
    default:
        return false;
    }
}

void ffm_watch_after(const ffm_function *function, const uint64_t *arguments, const ffm_operation *operation,
                     uint64_t number, ffm_thread *thread)
{
    if (opened) {
        opened = false;
        ffm_watch_system_call_over();
    }
    ffm_blocks_note(function, operation);
    if (function->kind == FFM_KIND_ORDER) {
        ffm_waits_note(function, operation, thread);
        __atomic_add_fetch(&watch.waits, 1, __ATOMIC_RELAXED);
    }
    if (adds_work(function, operation))
        add_work(function, arguments, operation, number, thread);
    ffm_cover cover;
    if (ffm_waited(function, operation, thread, &cover))
        wait_ended(&cover, thread);
}

/* ---- system calls -------------------------------------------------------------------------------------------------
 */

/* Ranges beside a buffer that the kernel works on, on pages that it shares with them. They are known by where they
 * begin, since places change. */
static __thread struct {
    uint32_t count;
    uint64_t since;
    struct {
        uint64_t operation, start;
        uint32_t thread;
    } ranges[SUSPENDED];
} suspended __attribute__((tls_model("initial-exec")));

static void suspend(uint64_t start, uint64_t end, bool writing)
{
    if (ffm_trace_on())
        return; /* no page is protected */
    for (uint32_t i = ffm_ranges_count(); i > 0; i--) {
        ffm_range *range = ffm_ranges_at(i - 1);
        if (!ffm_range_shares_page(range, start, end) || (!writing && range->writes_only))
            continue;
        if (suspended.count == SUSPENDED) {
            ffm_watch_touched(i - 1, FFM_ACCESS_UNWATCHED, range->start, ffm_now(), 0);
            continue;
        }
        if (suspended.count == 0)
            suspended.since = ffm_now();
        suspended.ranges[suspended.count].operation = range->operation;
        suspended.ranges[suspended.count].start = range->start;
        suspended.ranges[suspended.count++].thread = range->thread;
        ffm_ranges_disarm(range, FFM_RANGE_OPEN);
    }
}

void ffm_watch_system_call(uint64_t start, uint64_t bytes, bool writing)
{
    if (bytes == 0 || start == 0 || !ffm_ranges_overlap(start, start + bytes))
        return;
    ffm_ranges_lock();
    touch(start, start + bytes, writing, FFM_ACCESS_SYSTEM_CALL, 0);
    suspend(start, start + bytes, writing);
    ffm_ranges_unlock();
}

void ffm_watch_aside(uint64_t start, uint64_t end)
{
    if (!ffm_ranges_overlap(start, end))
        return;
    ffm_ranges_lock();
    suspend(start, end, false);
    ffm_ranges_unlock();
}

bool ffm_watch_in_flight(uint64_t start, uint64_t end)
{
    bool found = false;
    if (!ffm_watch_active())
        return false;
    ffm_ranges_lock();
    for (uint32_t i = 0; i < ffm_ranges_count() && !found; i++) {
        const ffm_range *range = ffm_ranges_at(i);
        found = !range->writes_only && !range->covered && ffm_box_touches(&range->box, start, end);
    }
    ffm_ranges_unlock();
    return found;
}

void ffm_watch_system_call_over(void)
{
    if (suspended.count == 0 || opened)
        return;
    /* In a call that slept other threads had the time to touch what lay open. */
    const bool missed = ffm_dispatch_threads() > 1 && ffm_now() - suspended.since > BRIEF;
    ffm_ranges_lock();
    for (; suspended.count > 0; suspended.count--) {
        for (uint32_t i = ffm_ranges_count(); i > 0; i--) {
            ffm_range *range = ffm_ranges_at(i - 1);
            if (range->state != FFM_RANGE_OPEN || range->operation != suspended.ranges[suspended.count - 1].operation ||
                range->thread != suspended.ranges[suspended.count - 1].thread ||
                range->start != suspended.ranges[suspended.count - 1].start)
                continue;
            if (missed || !ffm_ranges_arm(range))
                ffm_watch_touched(i - 1, FFM_ACCESS_UNWATCHED, range->start, suspended.since, 0);
        }
    }
    ffm_ranges_unlock();
}

void ffm_watch_released(uint64_t start, uint64_t bytes)
{
    uint64_t end = (start + bytes + PAGE - 1) & ~(uint64_t)(PAGE - 1);
    if (bytes == 0 || !ffm_watch_active())
        return;
    bool any = false;
    for (uint32_t i = 0; i < ffm_ranges_count() && !any; i++)
        any = ffm_ranges_at(i)->start < end && start < ffm_ranges_at(i)->end;
    if (!any)
        return;
    ffm_ranges_lock();
    touch(start, end, true, FFM_ACCESS_RELEASED, 0);
    cut(start, end); /* what is in flight has lost its memory */
    ffm_ranges_unlock();
}

/* ---- clocks ------------------------------------------------------------------------------------------------------ */

enum { FOREIGN = 8 };

static struct {
    uint32_t count;
    struct {
        uint64_t start, end;
        bool driver;
    } code[FOREIGN];
} foreign;

void ffm_watch_foreign(uint64_t start, uint64_t end, bool driver)
{
    if (foreign.count == FOREIGN)
        return;
    foreign.code[foreign.count].start = start;
    foreign.code[foreign.count].end = end;
    foreign.code[foreign.count].driver = driver;
    __atomic_store_n(&foreign.count, foreign.count + 1, __ATOMIC_RELEASE);
}

static bool in_foreign(uint64_t address, bool driver_only)
{
    for (uint32_t i = 0; i < __atomic_load_n(&foreign.count, __ATOMIC_ACQUIRE); i++)
        if (foreign.code[i].start <= address && address < foreign.code[i].end &&
            (foreign.code[i].driver || !driver_only))
            return true;
    return false;
}

bool ffm_watch_knows_driver(void)
{
    for (uint32_t i = 0; i < __atomic_load_n(&foreign.count, __ATOMIC_ACQUIRE); i++)
        if (foreign.code[i].driver)
            return true;
    return false;
}

bool ffm_watch_in_driver(uint32_t stack)
{
    uint32_t depth;
    const uint64_t *frames = ffm_stack_frames(stack, &depth);
    for (uint32_t i = 0; i < depth; i++)
        if (in_foreign(frames[i], true))
            return true;
    return false;
}

enum { FUNCTION = 1024, INTERPRETER_LOCKS = 4, NEAR_FRAMES = 6 };

static struct {
    uint32_t count;
    uint64_t functions[INTERPRETER_LOCKS];
} interpreter_locks;

void ffm_watch_interpreter_lock(uint64_t function)
{
    if (function != 0 && interpreter_locks.count < INTERPRETER_LOCKS)
        interpreter_locks.functions[interpreter_locks.count++] = function;
}

/* Python asks for the time whenever it takes a lock: that is no question of the program's. */
static __attribute__((noinline)) bool in_interpreter_lock(void)
{
    uint64_t frames[NEAR_FRAMES];
    if (interpreter_locks.count == 0)
        return false;
    const int depth = unw_backtrace((void **)frames, NEAR_FRAMES);
    for (int i = 0; i < depth; i++)
        for (uint32_t k = 0; k < interpreter_locks.count; k++)
            if (frames[i] - interpreter_locks.functions[k] < FUNCTION)
                return true;
    return false;
}

void ffm_watch_clock(const void *caller)
{
    static __thread bool read_before __attribute__((tls_model("initial-exec")));
    static __thread uint64_t noted __attribute__((tls_model("initial-exec")));
    ffm_thread *thread = ffm_thread_peek();
    if ((thread != NULL && (thread->depth != 0 || thread->bypass != 0 || noted == thread->operations.written)) ||
        in_foreign((uint64_t)caller, false) || in_interpreter_lock())
        return;
    bool earlier = read_before;
    read_before = true;
    if (thread == NULL || !ffm_watch_wants_stacks() || thread->operations.written == 0)
        return;
    noted = thread->operations.written;
    ffm_range nothing = {.operation = noted, .thread = thread->number};
    ffm_ranges_lock();
    record(&nothing, FFM_ACCESS_CLOCK, 0, earlier, ffm_now(), 0);
    ffm_ranges_unlock();
}

/* ---- start and fork ---------------------------------------------------------------------------------------------- */

bool ffm_watch_open(const uint8_t *plan, uint64_t keys)
{
    watch.plan = plan;
    watch.keys = keys;
    return ffm_trace_on() || ffm_faults_open();
}

void ffm_watch_after_fork(void)
{
    ffm_thread_memory_after_fork();
    ffm_mappings_after_fork();
    ffm_ranges_lock_after_fork();
    ffm_sink_release(&watch.accesses);
    watch.accesses = (ffm_stream){0};
    for (uint32_t i = ffm_ranges_count(); i > 0; i--) {
        ffm_range *range = ffm_ranges_at(i - 1);
        if (range->writes_only || range->state != FFM_RANGE_ARMED)
            ffm_ranges_remove(i - 1);
    }
    if (!watch.inherited)
        watch.forked = ffm_now();
    watch.inherited = true;
    ffm_ranges_unlock();
}
