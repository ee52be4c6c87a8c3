#include "faults.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "accesses.h"
#include "blocks.h"
#include "clock.h"
#include "closed_memory.h"
#include "counters.h"
#include "dispatch.h"
#include "emulation.h"
#include "foreign.h"
#include "giving_way.h"
#include "guarded.h"
#include "handlers.h"
#include "keys.h"
#include "own_pages.h"
#include "peek.h"
#include "protection.h"
#include "questions.h"
#include "quick_calls.h"
#include "ranges.h"
#include "resting.h"
#include "signal_mask.h"
#include "signal_stacks.h"
#include "signals.h"
#include "sink.h"
#include "stacks.h"
#include "steps.h"
#include "string_instructions.h"
#include "thread.h"
#include "thread_memory.h"
#include "threads.h"
#include "touched.h"
#include "watch_budget.h"
#include "watched.h"

enum { TRAP_FLAG = 0x100, WRITE_FAULT = 2, PAGE = 4096, STEPPED_PAGES = 8 };
enum { STACK_BELOW = 16 << 10 }; /* room for the kernel's signal frames, and for what the thread pushes next */

/* The pages that this thread has opened to all for the instruction that it is stepping over. */
static __thread struct {
    ffm_page pages[STEPPED_PAGES];
    uint32_t count;
    uint64_t alone; /* ffm_threads_alone when the first one was opened */
} stepping __attribute__((tls_model("initial-exec")));

/* The last fault of this thread that belonged to nobody, and ffm_protection_changes at that time. */
static __thread struct {
    uint64_t address, changes;
} unclaimed __attribute__((tls_model("initial-exec")));

/* A fault on a watched page. */
typedef struct {
    const siginfo_t *info;
    ffm_touched touched;
    uint64_t time;
    bool of_driver; /* and it does not count as a use (by_driver) */
} fault;

static bool writes(const ffm_decoded *instruction)
{
    const bool computes = instruction->kind == FFM_OPERAND_COMPUTE && !instruction->to_register;
    return computes || instruction->kind == FFM_OPERAND_STORE || instruction->kind == FFM_OPERAND_VECTOR_STORE;
}

/* Whether the instruction that faulted at a read then writes what is watched, which must be seen. */
static bool writes_later(const ffm_decoded *instruction, const fault *of)
{
    return !of->touched.of[0].writing && !of->of_driver && writes(instruction) &&
           ffm_access_forbidden(instruction->address, instruction->address + instruction->bytes, true);
}

/* Whether the instruction can be emulated, and touches nothing but the page. */
static bool decoded(const fault *of, const ffm_page *page, const ucontext_t *context, ffm_decoded *instruction)
{
    const uint64_t address = (uint64_t)of->info->si_addr;
    return stepping.count == 0 && ffm_decode(context, instruction) && address >= instruction->address &&
           address < instruction->address + instruction->bytes && instruction->address >= page->start &&
           instruction->address + instruction->bytes <= page->start + page->bytes && !writes_later(instruction, of);
}

/* Emulate common accesses instead of single-stepping: half the cost, and without keys, the page is open to other
 * threads only briefly.
 */
static bool emulated(const fault *of, const ffm_page *page, ucontext_t *context)
{
    ffm_decoded instruction;
    if (!decoded(of, page, context, &instruction))
        return false;
    ffm_emulation_execute(&instruction, context);
    return true;
}

/* Whether no other thread touches the operand of the program's own code meanwhile, neither of the program nor of the
 * driver. */
static bool is_alone_with(uint64_t operand)
{
    const ffm_thread *thread = ffm_thread_peek();
    return thread != NULL && thread->depth == 0 && !ffm_threads_several() && !ffm_threads_functions_lent() &&
           !ffm_blocks_hold(operand);
}

/* The same on a copy of the operand, while the page stays closed. A store needs nothing of what it overwrites. */
static bool emulated_closed(const fault *of, const ffm_page *page, ucontext_t *context)
{
    ffm_decoded instruction;
    char operand[16] = {0}, before[sizeof operand];
    if (!is_alone_with((uint64_t)of->info->si_addr) || !decoded(of, page, context, &instruction) ||
        instruction.is_locked || instruction.bytes > sizeof operand)
        return false;
    const bool stores = instruction.kind == FFM_OPERAND_STORE || instruction.kind == FFM_OPERAND_VECTOR_STORE;
    if (!stores && !ffm_closed_memory_read(instruction.address, operand, instruction.bytes))
        return false;
    const uint64_t address = instruction.address;
    gregset_t registers;
    memcpy(registers, context->uc_mcontext.gregs, sizeof registers);
    memcpy(before, operand, instruction.bytes);
    instruction.address = (uint64_t)operand;
    ffm_emulation_execute(&instruction, context);
    if ((!stores && memcmp(before, operand, instruction.bytes) == 0) ||
        ffm_closed_memory_write(address, operand, instruction.bytes))
        return true;
    memcpy(context->uc_mcontext.gregs, registers, sizeof registers);
    return false;
}

static bool executed(const fault *of, const ffm_page *page, ucontext_t *context)
{
    return emulated(of, page, context) || (stepping.count == 0 && ffm_string_executed(page, context));
}

static void step(ucontext_t *context)
{
    context->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
}

/* Whether the instruction touches nothing watched that has not been seen. The CPU may report the second page of an
 * access first. */
static bool all_seen(const fault *of)
{
    const uint64_t start = of->touched.of[0].start, before = of->touched.of[0].end - start - 1;
    if (of->of_driver)
        return true;
    return of->touched.known &&
           (start % PAGE != 0 || !ffm_access_first(start - before, start, of->touched.of[0].writing));
}

/* By keys, this thread alone is let through. */
static bool admitted(const fault *of, const ffm_page *page, ucontext_t *context)
{
    if (!all_seen(of) || !ffm_keys_admit_to(of->info, of->touched.of[0].writing, context))
        return false;
    const bool once = ffm_keys_admit() && executed(of, page, context);
    ffm_keys_expel();
    if (once)
        ffm_keys_expel_from(context);
    else
        step(context);
    return true;
}

/* Where keys close pages, no other thread may run while one is open to all. */
static bool is_missed(uint64_t alone)
{
    return ffm_keys_closed(false) != 0 && !ffm_threads_alone_since(alone);
}

/* The page is open to all threads meanwhile. */
static void step_over_open(const fault *of, const ffm_page *page, ucontext_t *context)
{
    const uint64_t alone = ffm_threads_alone();
    if (emulated_closed(of, page, context))
        return;
    /* Opening one page splits a mapping, which the kernel may refuse. */
    if (stepping.count == STEPPED_PAGES || is_missed(alone) || !ffm_ranges_open_page(page)) {
        ffm_access_give_up(page, of->time);
        return;
    }
    if (executed(of, page, context)) {
        ffm_ranges_close_page(page);
        return;
    }
    if (stepping.count == 0)
        stepping.alone = alone;
    stepping.pages[stepping.count++] = *page;
    step(context);
}

/* Whether what is watched on a page is given up, because the program accesses what lies beside it too often. */
static bool gives_way(const ffm_page *page, uint64_t time)
{
    const ffm_step next = ffm_steps_next(page->start, time);
    return next != FFM_STEP_OVER && ffm_access_give_way(page, next == FFM_STEP_NEVER, time);
}

/* Let one instruction through on a page with an armed range that it does not touch, or whose touch need not be
 * recorded. */
static bool let_through(const fault *of, ucontext_t *context)
{
    ffm_page page;
    if (!ffm_ranges_page_of((uint64_t)of->info->si_addr, &page))
        return false;
    ffm_own_pages_beside(&page);
    if (!gives_way(&page, of->time) && !admitted(of, &page, context))
        step_over_open(of, &page, context);
    ffm_steps_spend(of->time);
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
    ffm_access_give_up(&(ffm_page){.start = first, .bytes = end - first}, time);
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
    if (ffm_peek_lift_again(address))
        return true;
    fault found = {.info = info, .touched = ffm_touched_by(address, writing, context), .time = time};
    ffm_ranges_lock_in_handler();
    bool ours = forbidden(&found.touched);
    bool first = ours && is_first(&found.touched);
    ffm_ranges_unlock_in_handler();
    uint32_t stack = 0;
    ffm_thread *thread = ffm_thread_peek();
    if (first && (thread == NULL || ffm_watch_wants_stacks()))
        stack = stack_of_access(context, thread);
    ffm_ranges_lock_in_handler();
    found.of_driver = ours && by_driver(stack);
    if (ours && !found.of_driver)
        note(&found.touched, time, stack);
    const ffm_touched *touched = &found.touched;
    const bool on_stack = runs_on(address, context) && ffm_ranges_overlap(touched->of[0].start, touched->of[0].end);
    if (on_stack || let_through(&found, context))
        ours = true;
    uint64_t changes = ffm_protection_changes();
    ffm_ranges_unlock_in_handler();
    if (on_stack)
        spare_stack(context, time);
    return ours || try_again(address, changes);
}

static ffm_handler_end before_handler(ucontext_t *interrupted)
{
    ffm_keys_enter();
    ffm_quick_call_interrupted(interrupted);
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
    if (ours)
        ffm_watch_budget_spend(time, true);
    else
        ffm_signals_pass(number, info, opaque);
    errno = error;
}

static void close_stepped(uint64_t time)
{
    ffm_ranges_lock_in_handler();
    const bool missed = is_missed(stepping.alone);
    while (stepping.count > 0) {
        const ffm_page *page = &stepping.pages[--stepping.count];
        ffm_ranges_close_page(page);
        if (missed)
            ffm_access_give_up(page, time);
    }
    ffm_ranges_unlock_in_handler();
}

static void on_trap(int number, siginfo_t *info, void *opaque)
{
    int error = errno;
    ucontext_t *context = opaque;
    if (ffm_counters_read(context)) {
        errno = error;
        return;
    }
    const bool admitted = info->si_code == TRAP_TRACE && ffm_keys_admitted_to(context);
    if (info->si_code <= 0 || (stepping.count == 0 && !admitted)) {
        ffm_signals_pass(number, info, opaque);
        errno = error;
        return;
    }
    bool paused = ffm_dispatch_pause();
    const uint64_t time = ffm_now();
    if (stepping.count > 0)
        close_stepped(time);
    ffm_keys_expel_from(context);
    context->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
    ffm_steps_spend(time);
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
    ffm_steps_open(cost);
    ffm_sink_set_fault_cost(cost);
    ffm_keys_open();
    ffm_signals_move_frames(ffm_signal_stack_moved, ffm_signal_stack_calls);
    ffm_signals_before_handlers(before_handler);
    return ffm_signals_open(on_fault, on_trap, ffm_dispatch_signal);
}
