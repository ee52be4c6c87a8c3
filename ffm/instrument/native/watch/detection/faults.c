#include "faults.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "accesses.h"
#include "clock.h"
#include "counters.h"
#include "dispatch.h"
#include "emulation.h"
#include "foreign.h"
#include "guarded.h"
#include "handlers.h"
#include "keys.h"
#include "protection.h"
#include "questions.h"
#include "ranges.h"
#include "resting.h"
#include "signal_stacks.h"
#include "signals.h"
#include "sink.h"
#include "stacks.h"
#include "string_instructions.h"
#include "thread.h"
#include "thread_memory.h"
#include "touched.h"
#include "watched.h"

enum { TRAP_FLAG = 0x100, WRITE_FAULT = 2, PAGE = 4096, STEPPED_PAGES = 8 };
enum { STACK_BELOW = 16 << 10 }; /* room for the kernel's signal frames, and for what the thread pushes next */

/* Stepping over an instruction costs microseconds. A page that is stepped on more often than this is busy with data
 * next to a range, and its ranges are given up: they count as used. */
enum { BUSY_PAGE = 1 << 15, BUSY_SLOTS = 1 << 12 };

static uint32_t steps_on_page[BUSY_SLOTS];

/* The page that this thread has opened for the instruction that it is stepping over. */
static __thread struct {
    ffm_page pages[STEPPED_PAGES];
    uint32_t count;
} stepping __attribute__((tls_model("initial-exec")));

/* The last fault of this thread that belonged to nobody, and ffm_protection_changes at that time. */
static __thread struct {
    uint64_t address, changes;
} unclaimed __attribute__((tls_model("initial-exec")));

/* Emulate common accesses instead of single-stepping: half the cost, and the page is open to other threads only
 * briefly.
 */
static bool emulated(uint64_t address, const ffm_page *page, ucontext_t *context)
{
    ffm_emulation emulation;
    if (stepping.count != 0 || !ffm_emulation_of(context, &emulation) || address < emulation.address ||
        address >= emulation.address + emulation.bytes || emulation.address < page->start ||
        emulation.address + emulation.bytes > page->start + page->bytes)
        return false;
    ffm_emulation_execute(&emulation, context);
    return true;
}

/* Let one instruction through on a page with an armed range that it does not touch, or may touch without being
 * recorded. */
static bool step(uint64_t address, uint64_t time, ucontext_t *context)
{
    ffm_page page;
    if (!ffm_ranges_open_page(address, &page)) {
        if (page.bytes == 0)
            return false;
        ffm_access_give_up(&page, time); /* opening one page splits a mapping, which the kernel may refuse */
        return true;
    }
    uint32_t *steps = &steps_on_page[page.start / PAGE % BUSY_SLOTS];
    if (__atomic_add_fetch(steps, 1, __ATOMIC_RELAXED) > BUSY_PAGE || stepping.count == STEPPED_PAGES) {
        ffm_access_give_up(&page, time);
        ffm_ranges_close_page(&page);
        return true;
    }
    if (emulated(address, &page, context) || (stepping.count == 0 && ffm_string_executed(&page, context))) {
        ffm_ranges_close_page(&page);
        return true;
    }
    stepping.pages[stepping.count++] = page;
    context->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
    return true;
}

/* The driver's own threads run host functions, and the virtual GPU's kernels: what they do is ordered by the stream,
 * not by any wait of the program. */
static bool by_driver(uint32_t stack)
{
    const ffm_thread *thread = ffm_thread_peek();
    return (thread == NULL || thread->depth == 0) && ffm_foreign_driver_in(stack);
}

/* A page may have been opened between the fault and now, so the access is retried once. If it faults again although no
 * page has changed since, the fault was never ours. */
static bool try_again(uint64_t address, uint64_t changes)
{
    if (unclaimed.address == address && unclaimed.changes == changes)
        return false;
    unclaimed.address = address;
    unclaimed.changes = changes;
    return true;
}

static bool forbidden(const ffm_touched *touched)
{
    for (uint32_t i = 0; i < touched->count; i++)
        if (ffm_access_forbidden(touched->of[i].start, touched->of[i].end, touched->of[i].writing))
            return true;
    return false;
}

static bool is_first(const ffm_touched *touched)
{
    for (uint32_t i = 0; i < touched->count; i++)
        if (ffm_access_first(touched->of[i].start, touched->of[i].end, touched->of[i].writing))
            return true;
    return false;
}

static void note(const ffm_touched *touched, uint64_t time, uint32_t stack)
{
    for (uint32_t i = 0; i < touched->count; i++)
        ffm_access_seen(touched->of[i].start, touched->of[i].end, touched->of[i].writing, time, stack);
}

/* Whether the thread runs on the page: what it does next would fault there again, and the kernel could not write its
 * signal frames, which are below the stack pointer. */
static bool runs_on(uint64_t address, const ucontext_t *context)
{
    const uint64_t stack = (uint64_t)context->uc_mcontext.gregs[REG_RSP];
    return (address | (PAGE - 1)) >= stack - STACK_BELOW && (address & ~(uint64_t)(PAGE - 1)) <= stack;
}

/* Give up what is watched where a thread runs on memory of the program's, such as the stack of a coroutine. */
static void spare_stack(const ucontext_t *context, uint64_t time)
{
    const uint64_t stack = (uint64_t)context->uc_mcontext.gregs[REG_RSP];
    const uint64_t first = (stack - STACK_BELOW) & ~(uint64_t)(PAGE - 1), end = (stack | (PAGE - 1)) + 1;
    ffm_thread_memory_note((uint64_t)__builtin_thread_pointer(), first, end);
    ffm_ranges_lock_in_handler();
    ffm_access_give_up(&(ffm_page){.start = first, .bytes = (uint32_t)(end - first)}, time);
    ffm_ranges_unlock_in_handler();
}

/* The stack of an access. The unwinder makes two system calls for each frame, which must be intercepted: it blocks
 * signals for a while, and reads pages that may be watched. A known stack needs none. */
static uint32_t stack_of_access(const ucontext_t *context, ffm_thread *thread)
{
    const ffm_registers registers = ffm_registers_in(context);
    const void *code = (const void *)registers.instruction; // NOLINT(performance-no-int-to-ptr)
    bool truncated;
    uint32_t stack;
    if (thread != NULL && ffm_known_stack_find(&thread->accessors, code, registers.stack, &stack))
        return stack;
    ffm_dispatch_resume(true);
    stack = ffm_stack_from(&registers, &truncated);
    if (thread != NULL && ffm_known_stack_met(&thread->accessors, code, registers.stack))
        ffm_known_stack_add(&thread->accessors, code, registers.stack, &registers, stack);
    ffm_dispatch_pause();
    return stack;
}

/* Whether the fault was ours. */
static bool handle(siginfo_t *info, ucontext_t *context, uint64_t time)
{
    uint64_t address = (uint64_t)info->si_addr;
    bool writing = context->uc_mcontext.gregs[REG_ERR] & WRITE_FAULT;
    if (info->si_code <= 0) /* sent by a process, not by the CPU */
        return false;
    const ffm_touched touched = ffm_touched_by(address, writing, context);
    ffm_ranges_lock_in_handler();
    bool ours = forbidden(&touched);
    bool first = ours && is_first(&touched);
    ffm_ranges_unlock_in_handler();
    uint32_t stack = 0;
    ffm_thread *thread = ffm_thread_peek();
    if (first && (thread == NULL || ffm_watch_wants_stacks()))
        stack = stack_of_access(context, thread);
    ffm_ranges_lock_in_handler();
    if (ours && !by_driver(stack))
        note(&touched, time, stack);
    const bool on_stack = runs_on(address, context) && ffm_ranges_overlap(touched.of[0].start, touched.of[0].end);
    if (on_stack || step(address, time, context))
        ours = true;
    uint64_t changes = ffm_protection_changes();
    ffm_ranges_unlock_in_handler();
    if (on_stack)
        spare_stack(context, time);
    return ours || try_again(address, changes);
}

static ffm_handler_end before_handler(void)
{
    ffm_keys_enter();
    ffm_resting_wake();
    return ffm_dispatch_handler_begins();
}

static void on_fault(int number, siginfo_t *info, void *opaque)
{
    uint64_t time = ffm_now();
    int error = errno;
    bool paused = ffm_dispatch_pause();
    ffm_keys_enter();
    bool ours = ffm_keys_lacked(info, opaque) || handle(info, opaque, time) || ffm_guarded_abandon(info, opaque);
    ffm_keys_leave(opaque);
    ffm_dispatch_resume(paused);
    if (!ours)
        ffm_signals_pass(number, info, opaque);
    errno = error;
}

static void on_trap(int number, siginfo_t *info, void *opaque)
{
    int error = errno;
    ucontext_t *context = opaque;
    if (ffm_counters_read(context)) {
        errno = error;
        return;
    }
    if (stepping.count == 0 || info->si_code <= 0) {
        ffm_signals_pass(number, info, opaque);
        errno = error;
        return;
    }
    bool paused = ffm_dispatch_pause();
    ffm_ranges_lock_in_handler();
    while (stepping.count > 0)
        ffm_ranges_close_page(&stepping.pages[--stepping.count]);
    ffm_ranges_unlock_in_handler();
    context->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
    ffm_dispatch_resume(paused);
    errno = error;
}

/* ---- what a fault costs ------------------------------------------------------------------------------------------ */

enum { TRIALS = 32 };

static uint64_t handler_entered;

static void on_trial(int number, siginfo_t *info, void *context)
{
    handler_entered = ffm_now();
    (void)number, (void)context;
    mprotect((void *)((uint64_t)info->si_addr & ~(uint64_t)(PAGE - 1)), PAGE, PROT_READ | PROT_WRITE);
}

/* Nanoseconds from an access to the first line of the handler: the minimum of a few. */
static uint64_t fault_cost(void)
{
    struct sigaction trial = {.sa_sigaction = on_trial, .sa_flags = SA_SIGINFO | SA_ONSTACK}, before;
    volatile char *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED || sigaction(SIGSEGV, &trial, &before) != 0)
        return 0;
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < TRIALS; i++) {
        *page = 1;
        mprotect((void *)page, PAGE, PROT_NONE);
        uint64_t accessed = ffm_now();
        *page = 2;
        if (handler_entered - accessed < least)
            least = handler_entered - accessed;
    }
    sigaction(SIGSEGV, &before, NULL);
    munmap((void *)page, PAGE);
    return least;
}

static uint64_t cost;

uint64_t ffm_faults_cost(void)
{
    return cost;
}

bool ffm_faults_open(void)
{
    ffm_signals_unblock();
    cost = fault_cost();
    ffm_sink_set_fault_cost(cost);
    ffm_keys_open();
    ffm_signals_move_frames(ffm_signal_stack_moved);
    ffm_signals_before_handlers(before_handler);
    return ffm_signals_open(on_fault, on_trap, ffm_dispatch_signal);
}
