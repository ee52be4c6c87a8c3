#define UNW_LOCAL_ONLY
#include "clock_reads.h"

#include <libunwind.h>
#include <stddef.h>
#include <string.h>

#include "accesses.h"
#include "clock.h"
#include "foreign.h"
#include "instruments.h"
#include "ranges.h"
#include "records.h"
#include "thread.h"
#include "unwinding.h"
#include "waiters.h"

enum { FUNCTION = 1024, INTERPRETER_CLOCKS = 64, INTERPRETER_CODE = 8, NEAR_FRAMES = 8, OWN_FRAMES = 16 };

typedef enum { ELSEWHERE, INTERPRETER, FOR_SCRIPTS } code_kind;

/* Capturing a stack costs a microsecond. So a limited number of a thread's reads whose stacks are not recognised are
 * captured between two of its operations, and a limited number of their stacks are told apart. */
enum { CAPTURED = 1024, TOLD_APART = 4 };

/* Reads before the recording begins: so many of all threads are remembered, with so many frames. */
enum { EARLY = 32, EARLY_FRAMES = 16 };

/* The empty stack: whose read it is, is not known. */
enum { NO_STACK = 0 };

static struct {
    uint32_t count;
    uint64_t functions[INTERPRETER_CLOCKS];
} interpreter_clocks;

static struct {
    uint32_t count;
    struct {
        uint64_t first, bytes;
        code_kind kind;
    } parts[INTERPRETER_CODE];
} interpreter_code;

static struct {
    bool open;
    uint64_t unseen; /* when there were too many for the first time; 0 for never */
    uint32_t count;
    struct {
        uint64_t time;
        int depth;
        uint64_t frames[EARLY_FRAMES];
    } reads[EARLY];
} early;

void ffm_clock_of_interpreter(uint64_t function)
{
    if (interpreter_clocks.count < INTERPRETER_CLOCKS)
        interpreter_clocks.functions[interpreter_clocks.count++] = function;
}

void ffm_clock_interpreter_code(uint64_t first, uint64_t bytes, bool for_scripts)
{
    const uint32_t count = interpreter_code.count;
    if (count == INTERPRETER_CODE)
        return;
    interpreter_code.parts[count].first = first;
    interpreter_code.parts[count].bytes = bytes;
    interpreter_code.parts[count].kind = for_scripts ? FOR_SCRIPTS : INTERPRETER;
    __atomic_store_n(&interpreter_code.count, count + 1, __ATOMIC_RELEASE);
}

static code_kind kind_of_code(uint64_t address)
{
    const uint32_t count = __atomic_load_n(&interpreter_code.count, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < count; i++)
        if (address - interpreter_code.parts[i].first < interpreter_code.parts[i].bytes)
            return interpreter_code.parts[i].kind;
    return ELSEWHERE;
}

static bool is_interpreter_clock(uint64_t address)
{
    for (uint32_t k = 0; k < interpreter_clocks.count; k++)
        if (address - interpreter_clocks.functions[k] < FUNCTION)
            return true;
    return false;
}

/* If no such function is known, any read may be a script's. */
static uint32_t asked(uint32_t stack)
{
    uint64_t frames[NEAR_FRAMES];
    if (interpreter_clocks.count == 0)
        return FFM_ACCESS_ASKED;
    const uint32_t depth = ffm_stack_frames(stack, frames, NEAR_FRAMES);
    for (uint32_t i = 0; i < depth; i++)
        if (is_interpreter_clock(frames[i]))
            return FFM_ACCESS_ASKED;
    return 0;
}

/* Whether the interpreter reads for itself, as it does when it collects garbage: thousands of times while modules are
 * imported, from ever different stacks. */
static bool is_interpreters_own(uint64_t caller)
{
    uint64_t frames[OWN_FRAMES];
    if (interpreter_clocks.count == 0 || kind_of_code(caller) != INTERPRETER)
        return false;
    ffm_unwinding_begin();
    const int depth = unw_backtrace((void **)frames, OWN_FRAMES);
    ffm_unwinding_end();
    int inner = 0;
    while (inner < depth && frames[inner] != caller)
        inner++;
    for (int i = inner; i < depth; i++) {
        const code_kind kind = kind_of_code(frames[i]);
        if (kind == ELSEWHERE)
            return true;
        if (kind == FOR_SCRIPTS || is_interpreter_clock(frames[i]))
            return false;
    }
    return inner < depth;
}

static void unseen_early(void)
{
    if (early.unseen == 0)
        early.unseen = ffm_now();
}

static void remember(void)
{
    uint64_t frames[EARLY_FRAMES];
    ffm_unwinding_begin();
    const int depth = unw_backtrace((void **)frames, EARLY_FRAMES);
    ffm_unwinding_end();
    const uint32_t known = __atomic_load_n(&early.count, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < known && i < EARLY; i++)
        if (early.reads[i].depth == depth && memcmp(early.reads[i].frames, frames, (size_t)depth * sizeof *frames) == 0)
            return;
    const uint32_t place = known < EARLY ? __atomic_fetch_add(&early.count, 1, __ATOMIC_RELAXED) : EARLY;
    if (depth <= 0 || place >= EARLY) {
        unseen_early();
        return;
    }
    early.reads[place].time = ffm_now();
    memcpy(early.reads[place].frames, frames, (size_t)depth * sizeof *frames);
    early.reads[place].depth = depth;
}

static void record(uint64_t operations, uint32_t thread, uint32_t flags, bool counter, uint64_t time, uint32_t stack)
{
    const ffm_range nothing = {.operation = operations, .thread = thread};
    flags |= asked(stack);
    ffm_ranges_lock();
    ffm_access_record(&nothing, FFM_ACCESS_CLOCK, flags, counter, time, stack);
    ffm_ranges_unlock();
}

void ffm_clock_reads_open(void)
{
    early.open = true;
    for (uint32_t i = 0; i < early.count && i < EARLY; i++)
        record(0, 0, FFM_ACCESS_EARLY, false, early.reads[i].time,
               ffm_stack_number(early.reads[i].frames, (uint32_t)early.reads[i].depth));
    if (early.unseen != 0)
        record(0, 0, FFM_ACCESS_EARLY, false, early.unseen, NO_STACK);
}

/* Reads of this thread since an operation or a wait ended. */
typedef struct {
    uint64_t operations, waits; /* of this thread, and of all, before */
    uint32_t captured, told_apart;
    uint32_t stacks[TOLD_APART];
    bool unseen; /* some were not captured */
} reads;

static reads *reads_here(const ffm_thread *thread)
{
    static __thread reads here __attribute__((tls_model("initial-exec")));
    const uint64_t operations = thread == NULL ? 0 : thread->operations.stream.written;
    if (here.operations != operations || here.waits != ffm_waiters_waits())
        here = (reads){.operations = operations, .waits = ffm_waiters_waits()};
    return &here;
}

/* Whether the stack is one of those whose reads were recorded. Remembers it. */
static bool told(reads *here, uint32_t stack)
{
    for (uint32_t i = 0; i < here->told_apart && i < TOLD_APART; i++)
        if (here->stacks[i] == stack)
            return true;
    here->stacks[here->told_apart++ % TOLD_APART] = stack;
    return false;
}

/* Some reads are not captured: any of them may be the program's. */
static void unseen(reads *here, bool counter)
{
    const ffm_thread *thread = early.open && !here->unseen ? ffm_thread_self() : NULL;
    here->unseen = true;
    if (!early.open)
        unseen_early();
    else if (thread != NULL)
        record(here->operations, thread->number, 0, counter, ffm_now(), NO_STACK);
}

static void read_by(const void *caller, uint64_t base, const ffm_registers *from, bool counter)
{
    static __thread bool of_driver __attribute__((tls_model("initial-exec")));
    ffm_thread *thread = ffm_thread_peek();
    /* The program's malloc may read a clock, also when the C library calls it for the unwinder's variables. */
    if (of_driver || ffm_unwinding_here() || (thread != NULL && (thread->depth != 0 || thread->bypass != 0)) ||
        ffm_instruments_hold((uint64_t)caller) || ffm_foreign_holds((uint64_t)caller))
        return;
    reads *here = reads_here(thread);
    if (!early.open) {
        if (from == NULL && is_interpreters_own((uint64_t)caller))
            return;
        if (here->captured == CAPTURED)
            unseen(here, counter);
        else if (from == NULL)
            remember();
        here->captured += here->captured < CAPTURED;
        return;
    }
    bool truncated;
    const uint64_t now = ffm_now();
    uint32_t stack;
    if (thread == NULL || !ffm_known_stack_find(&thread->clock_readers, caller, base, &stack)) {
        if (from == NULL && is_interpreters_own((uint64_t)caller))
            return;
        if (here->captured == CAPTURED) {
            unseen(here, counter);
            return;
        }
        stack = from == NULL ? ffm_stack_here(0, &truncated) : ffm_stack_from(from, &truncated);
        here->captured++;
        if (thread != NULL && ffm_known_stack_met(&thread->clock_readers, caller, base))
            ffm_known_stack_add(&thread->clock_readers, caller, base, from, stack);
    }
    if (told(here, stack))
        return;
    if (ffm_foreign_driver_in(stack)) { /* perhaps on a thread of the program, in a call that is not recorded */
        of_driver = ffm_foreign_driver_started(stack); /* also what it calls of the program, which the stream orders */
        return;
    }
    if (thread != NULL || (thread = ffm_thread_self()) != NULL)
        record(here->operations, thread->number, 0, counter, now, stack);
}

void ffm_clock_read(const void *caller, const ffm_registers *from)
{
    read_by(caller, from == NULL ? (uint64_t)__builtin_frame_address(0) : from->stack, from, false);
}

void ffm_clock_counter_read(const ffm_registers *from)
{
    read_by((const void *)from->instruction, from->stack, from, true);
}

void ffm_clock_counter_unseen(void)
{
    unseen(reads_here(ffm_thread_peek()), true);
}
