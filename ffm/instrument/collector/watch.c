#include "watch.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <ucontext.h>

#include "blocks.h"
#include "clock.h"
#include "neighbours.h"
#include "ranges.h"
#include "stacks.h"

enum { TRAP_FLAG = 0x100, WRITE_FAULT = 2, PAGE = 4096, STEPPED_PAGES = 8 };

/* Stepping over an instruction costs ten microseconds. A page that is stepped on more often than this is busy with data
 * beside the range, and the range is given up: it counts as used. Each time that happens the page is allowed half as
 * many steps as before, so that a busy page costs no more than twice its first allowance in a whole run. */
enum { BUSY_PAGE = 512, BUSY_SLOTS = 4096 };

static struct {
    uint32_t steps;
    uint32_t given_up; /* times */
} busy[BUSY_SLOTS];

static bool too_busy(uint64_t page)
{
    uint32_t slot = (uint32_t)(page / PAGE % BUSY_SLOTS);
    uint32_t halvings = __atomic_load_n(&busy[slot].given_up, __ATOMIC_RELAXED);
    uint32_t allowed = BUSY_PAGE >> (halvings < 10 ? halvings : 10);
    if (__atomic_add_fetch(&busy[slot].steps, 1, __ATOMIC_RELAXED) <= allowed)
        return false;
    __atomic_store_n(&busy[slot].steps, 0, __ATOMIC_RELAXED);
    __atomic_add_fetch(&busy[slot].given_up, 1, __ATOMIC_RELAXED);
    return true;
}

static struct {
    const uint8_t *plan;
    uint64_t keys;
    struct sigaction previous_fault;
    struct sigaction previous_trap;
    pthread_mutex_t lock;
    ffm_stream accesses; /* of the whole process: the end of a watch can come on any thread */
} watch = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Pages that this thread has open for the instruction it is stepping over. */
static __thread struct {
    uint64_t pages[STEPPED_PAGES];
    uint32_t count;
} stepping __attribute__((tls_model("initial-exec")));

static void record(const ffm_range *range, uint32_t kind, uint64_t address, uint64_t time, uint32_t stack)
{
    /* The handler of a fault can come here while no other code of this thread does: nothing under the lock faults. */
    pthread_mutex_lock(&watch.lock);
    ffm_access *out = ffm_sink_reserve(&watch.accesses, FFM_CHUNK_ACCESSES, 0, sizeof *out);
    if (out != NULL) {
        *out = (ffm_access){.time = time,
                            .address = address,
                            .operation = range->operation,
                            .operation_thread = range->thread,
                            .stack = stack,
                            .kind = kind,
                            .cost = (uint32_t)(ffm_now() - time)};
        ffm_sink_commit(&watch.accesses, sizeof *out);
    }
    pthread_mutex_unlock(&watch.lock);
}

static void chain(const struct sigaction *previous, int number, siginfo_t *info, void *context)
{
    if (previous->sa_flags & SA_SIGINFO) {
        previous->sa_sigaction(number, info, context);
    } else if (previous->sa_handler == SIG_DFL) {
        /* Not ours: let the fault happen again, with the effect that it has without us. */
        signal(number, SIG_DFL);
    } else if (previous->sa_handler != SIG_IGN) {
        previous->sa_handler(number);
    }
}

static ffm_registers registers_of(const ucontext_t *context)
{
    const greg_t *general = context->uc_mcontext.gregs;
    return (ffm_registers){.instruction = (uint64_t)general[REG_RIP],
                           .stack = (uint64_t)general[REG_RSP],
                           .frame = (uint64_t)general[REG_RBP],
                           .rbx = (uint64_t)general[REG_RBX],
                           .r12 = (uint64_t)general[REG_R12],
                           .r13 = (uint64_t)general[REG_R13],
                           .r14 = (uint64_t)general[REG_R14],
                           .r15 = (uint64_t)general[REG_R15]};
}

static void on_fault(int number, siginfo_t *info, void *opaque)
{
    uint64_t time = ffm_now();
    ucontext_t *context = opaque;
    uint64_t address = (uint64_t)info->si_addr;
    uint64_t page = address & ~(uint64_t)(PAGE - 1);
    bool writing = context->uc_mcontext.gregs[REG_ERR] & WRITE_FAULT;
    ffm_range range;
    bool ours = false;
    while (ffm_ranges_take(address, address + 1, writing, &range)) {
        bool truncated;
        ffm_registers registers = registers_of(context);
        record(&range, writing ? FFM_ACCESS_WRITE : FFM_ACCESS_READ, address, time,
               ffm_stack_from(&registers, &truncated));
        ours = true;
    }
    if (ffm_ranges_on_page(page) && too_busy(page)) {
        while (ffm_ranges_take(page, page + PAGE, true, &range)) {
            record(&range, FFM_ACCESS_UNWATCHED, address, time, 0);
            ours = true;
        }
    }
    if (ffm_ranges_on_page(page) && stepping.count < STEPPED_PAGES) {
        /* Data beside a watched range, or another range on the page: let this one instruction through. */
        ffm_ranges_open_page(page);
        stepping.pages[stepping.count++] = page;
        context->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
        ours = true;
    }
    if (!ours)
        chain(&watch.previous_fault, number, info, opaque);
}

static void on_trap(int number, siginfo_t *info, void *opaque)
{
    ucontext_t *context = opaque;
    if (stepping.count == 0) {
        chain(&watch.previous_trap, number, info, opaque);
        return;
    }
    while (stepping.count > 0)
        ffm_ranges_close_page(stepping.pages[--stepping.count]);
    context->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
}

bool ffm_watch_open(const uint8_t *plan, uint64_t keys)
{
    watch.plan = plan;
    watch.keys = keys;
    struct sigaction fault = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    struct sigaction trap = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    return sigaction(SIGSEGV, &fault, &watch.previous_fault) == 0 &&
           sigaction(SIGTRAP, &trap, &watch.previous_trap) == 0;
}

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

static void end_watches(uint64_t start, uint64_t end, bool writing, uint32_t kind, uint32_t stack)
{
    ffm_range range;
    while (ffm_ranges_take(start, end, writing, &range))
        record(&range, kind, start > range.start ? start : range.start, ffm_now(), stack);
}

void ffm_watch_before(const ffm_function *function, const ffm_operation *operation, ffm_thread *thread)
{
    (void)thread;
    if (operation->flags & FFM_OPERATION_HOST_SOURCE) /* the driver reads it for the program */
        end_watches(operation->source, operation->source + operation->bytes, false, FFM_ACCESS_DRIVER,
                    operation->stack);
    if (operation->flags & FFM_OPERATION_HOST_DESTINATION)
        end_watches(operation->destination, operation->destination + operation->bytes, true, FFM_ACCESS_OVERWRITTEN,
                    operation->stack);
    if (function->kind == FFM_KIND_FREE)
        end_watches(operation->destination, operation->destination + ffm_blocks_remove(operation->destination), true,
                    FFM_ACCESS_RELEASED, operation->stack);
}

/* Memory on a thread's stack cannot be watched by page: the thread itself runs on it. */
static bool on_stack(uint64_t start, uint64_t end)
{
    static __thread uint64_t low, high;
    if (high == 0) {
        pthread_attr_t attributes;
        void *bottom;
        size_t bytes;
        if (pthread_getattr_np(pthread_self(), &attributes) != 0)
            return true;
        pthread_attr_getstack(&attributes, &bottom, &bytes);
        pthread_attr_destroy(&attributes);
        low = (uint64_t)bottom;
        high = low + bytes;
    }
    return start < high && low < end;
}

void ffm_watch_after(const ffm_function *function, const ffm_operation *operation, uint64_t number, ffm_thread *thread)
{
    ffm_blocks_note(function, operation);
    if (operation->result != 0 || operation->bytes == 0 || function->kind != FFM_KIND_TRANSFER ||
        !planned(operation->stack))
        return;
    ffm_range range = {.operation = number, .thread = thread->number, .stream = operation->stream};
    if (operation->flags & FFM_OPERATION_HOST_DESTINATION) {
        range.start = operation->destination;
    } else if (operation->flags & FFM_OPERATION_HOST_SOURCE) {
        /* An asynchronous copy stages a pageable source before it returns: the CPU may write it at once. */
        if (function->asynchronous && !ffm_blocks_hold(operation->source))
            return;
        range.start = operation->source;
        range.writes_only = true;
    } else {
        return;
    }
    range.end = range.start + operation->bytes;
    ffm_range earlier;
    if (range.writes_only && ffm_ranges_take_same_source(&range, &earlier))
        record(&earlier, FFM_ACCESS_OVERWRITTEN, range.start, ffm_now(), operation->stack);
    bool shared = !ffm_blocks_own_pages(range.start) && ffm_neighbours_at(range.start, range.end);
    if (shared || on_stack(range.start, range.end) || !ffm_ranges_add(&range))
        record(&range, FFM_ACCESS_UNWATCHED, range.start, ffm_now(), operation->stack);
}

bool ffm_watch_active(void)
{
    return ffm_ranges_any();
}

void ffm_watch_system_call(uint64_t start, uint64_t bytes, bool writing)
{
    if (bytes == 0)
        return;
    end_watches(start, start + bytes, writing, FFM_ACCESS_SYSTEM_CALL, 0);
    /* The kernel cannot be stepped over: what lies beside the buffer on its pages is given up. */
    uint64_t first = start & ~(uint64_t)(PAGE - 1), last = (start + bytes + PAGE - 1) & ~(uint64_t)(PAGE - 1);
    end_watches(first, last, writing, FFM_ACCESS_UNWATCHED, 0);
}

void ffm_watch_after_fork(void)
{
    pthread_mutex_init(&watch.lock, NULL);
    ffm_sink_release(&watch.accesses);
    watch.accesses = (ffm_stream){0};
    ffm_ranges_clear();
}
