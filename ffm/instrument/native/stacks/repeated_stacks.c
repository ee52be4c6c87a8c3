#include "repeated_stacks.h"

#include <stddef.h>
#include <string.h>

#include "modules.h"
#include "python_frames.h"
#include "stacks.h"
#include "unwind_from.h"
#include "unwinding.h"

/* Learning a stack takes more than a hundred times as long as capturing it. So this many are learned at once, and then
 * one for every so many that were captured. Stacks that differ each time then cost little more than capturing them. */
enum { LEARNED_AT_ONCE = 64, CAPTURED_FOR_EACH = 1024 };

static uint64_t mixed(uint64_t caller, const uint64_t *frame, uint64_t number)
{
    return (caller ^ (uint64_t)frame << 16 ^ number * 0xC2B2AE3D27D4EB4Fu) * 0x9E3779B97F4A7C15u;
}

static uint32_t set_of(uint64_t caller, const uint64_t *frame, const char *function)
{
    return (uint32_t)(mixed(caller, frame, (uint64_t)function) >> 32) % FFM_REPEATED_SETS;
}

/* The words are read in the order in which an unwinder reads them. So nothing is read that is no part of the stack. */
static bool holds(const ffm_repeated_stack *one, uint64_t frame_pointer)
{
    if (one->modules != ffm_modules_generation() || (one->followed && one->frame_pointer != frame_pointer))
        return false;
    for (uint32_t i = 0; i < one->count; i++)
        if (*(const volatile uint64_t *)one->words[i].place != one->words[i].value)
            return false;
    return true;
}

/* False also if a handler of a signal learned another stack meanwhile. */
static bool find(const ffm_repeated_stacks *known, const uint64_t *frame, const char *function, uint32_t *number)
{
    const uint32_t set = set_of(frame[1], frame, function), added = *(const volatile uint32_t *)&known->added;
    for (uint32_t way = 0; way < FFM_REPEATED_WAYS; way++) {
        if (known->starts[set][way].caller != frame[1] || known->starts[set][way].frame != (uint64_t)frame)
            continue;
        const ffm_repeated_stack *one = &known->stacks[set][way];
        if (one->function != function)
            continue;
        *number = one->number;
        if (holds(one, frame[0]))
            return *(const volatile uint32_t *)&known->added == added;
    }
    return false;
}

/* Where an unwinder is. */
typedef struct {
    uint64_t instruction, stack, frame_pointer;
    uint64_t returns_at, saved_at; /* where the stack holds the instruction and the frame pointer; 0: it does not */
} position;

/* Where a register was saved, unless it still is in the context from which unwinding started. */
static uint64_t saved_at(unw_cursor_t *cursor, unw_regnum_t name, const unw_context_t *context)
{
    unw_save_loc_t found;
    if (unw_get_save_loc(cursor, name, &found) != 0 || found.type != UNW_SLT_MEMORY)
        return 0;
    return found.u.addr - (uint64_t)context < sizeof *context ? 0 : found.u.addr;
}

/* One step outwards with that frame pointer, and with `elsewhere` in the other registers that functions preserve.
 * Returns what unw_step returns. */
static int step(const position *from, uint64_t frame_pointer, uint64_t elsewhere, position *to)
{
    unw_context_t context;
    unw_cursor_t cursor;
    const ffm_registers registers = {.instruction = from->instruction - 1, /* within the call */
                                     .stack = from->stack,
                                     .frame = frame_pointer,
                                     .rbx = elsewhere,
                                     .r12 = elsewhere,
                                     .r13 = elsewhere,
                                     .r14 = elsewhere,
                                     .r15 = elsewhere};
    *to = (position){0};
    if (!ffm_unwind_from(&cursor, &context, &registers))
        return -1;
    const int found = unw_step(&cursor);
    if (found < 0)
        return found;
    to->returns_at = saved_at(&cursor, UNW_X86_64_RIP, &context);
    to->saved_at = saved_at(&cursor, UNW_X86_64_RBP, &context);
    unw_word_t word = 0;
    to->instruction = unw_get_reg(&cursor, UNW_REG_IP, &word) == 0 ? word : 0;
    to->stack = unw_get_reg(&cursor, UNW_REG_SP, &word) == 0 ? word : 0;
    to->frame_pointer = unw_get_reg(&cursor, UNW_X86_64_RBP, &word) == 0 ? word : 0;
    return found;
}

static bool add_word(ffm_repeated_stack *fresh, uint64_t place, uint64_t value)
{
    if (fresh->count == FFM_REPEATED_WORDS || *(const uint64_t *)place != value)
        return false;
    fresh->words[fresh->count].place = place;
    fresh->words[fresh->count++].value = value;
    return true;
}

/* Some function is found by the frame pointer, which is the caller's or was saved. */
static bool follow(ffm_repeated_stack *fresh, const position *at)
{
    if (at->saved_at != 0)
        return add_word(fresh, at->saved_at, at->frame_pointer);
    fresh->followed = true;
    return true;
}

static bool is_same(const position *one, const position *other)
{
    return one->instruction == other->instruction && one->stack == other->stack &&
           one->returns_at == other->returns_at && one->saved_at == other->saved_at;
}

/* Walk outwards, and learn what the way depends on: each frame is found from the stack pointer and the frame pointer.
 * If another frame pointer leads to the same frame, the frame does not depend on it; if the frame moves as far as the
 * pointer, it depends on nothing else. False if something else may matter, as in signal frames and aligned frames. */
static bool walk(ffm_repeated_stack *fresh, const uint64_t *frame, uint64_t *frames, uint32_t *depth)
{
    enum { READABLE = 256 };
    uint64_t room[READABLE];
    const uint64_t elsewhere = (uint64_t)&room[READABLE / 2];
    for (uint32_t i = 0; i < READABLE; i++) /* an unwinder that follows what it finds here gets no further */
        room[i] = elsewhere;
    position at = {.instruction = frame[1], .stack = (uint64_t)(frame + 2), .frame_pointer = frame[0]};
    for (*depth = 0; *depth < FFM_REPEATED_WORDS;) {
        position next, other;
        frames[(*depth)++] = at.instruction;
        const int found = step(&at, at.frame_pointer, elsewhere, &next);
        const int found_elsewhere = step(&at, elsewhere, elsewhere, &other);
        if (found < 0 || found != found_elsewhere)
            return false;
        if (!is_same(&next, &other) &&
            (next.stack - at.frame_pointer != other.stack - elsewhere || !follow(fresh, &at)))
            return false;
        if (next.returns_at != 0 &&
            (next.returns_at + sizeof(uint64_t) != next.stack || !add_word(fresh, next.returns_at, next.instruction)))
            return false;
        if (found == 0)
            return true;
        if (next.returns_at == 0)
            return false;
        if (next.saved_at == 0)
            next.saved_at = at.saved_at;
        at = next;
    }
    return false;
}

/* Whether a start was met before with the same stack: only what occurs again is worth learning. */
static bool met(ffm_repeated_stacks *known, const uint64_t *frame, uint32_t number)
{
    enum { PLACES = sizeof known->met / sizeof *known->met };
    const uint64_t start = mixed(frame[1], frame, number + 1);
    uint64_t *place = &known->met[(start >> 32) % PLACES];
    const bool again = *place == start;
    *place = start;
    return again;
}

static __attribute__((noinline)) bool learn(ffm_repeated_stack *fresh, const uint64_t *frame)
{
    uint64_t frames[FFM_REPEATED_WORDS], captured[FFM_REPEATED_WORDS + 1];
    uint32_t depth;
    ffm_unwinding_begin();
    const bool walked = walk(fresh, frame, frames, &depth);
    ffm_unwinding_end();
    return walked && ffm_stack_frames(fresh->number, captured, FFM_REPEATED_WORDS + 1) == depth &&
           memcmp(frames, captured, depth * sizeof *frames) == 0;
}

/* A handler that interrupts this must not find half of it, nor change it. */
static void add(ffm_repeated_stacks *known, const uint64_t *frame, const ffm_repeated_stack *fresh)
{
    const uint32_t set = set_of(frame[1], frame, fresh->function), way = known->added % FFM_REPEATED_WAYS;
    volatile uint64_t *caller = &known->starts[set][way].caller;
    *caller = 0;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    known->stacks[set][way] = *fresh;
    known->starts[set][way].frame = (uint64_t)frame;
    known->added++;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    *caller = frame[1];
}

static void note(ffm_repeated_stacks *known, const uint64_t *frame, const char *function, uint32_t number,
                 uint32_t modules)
{
    known->captured++;
    if (known->changing || !met(known, frame, number) ||
        known->walked >= LEARNED_AT_ONCE + known->captured / CAPTURED_FOR_EACH)
        return;
    known->changing = true;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    known->walked++;
    ffm_repeated_stack fresh = {.frame_pointer = frame[0], .function = function, .modules = modules, .number = number};
    if (learn(&fresh, frame))
        add(known, frame, &fresh);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    known->changing = false;
}

uint32_t ffm_repeated_stack_of_caller(ffm_repeated_stacks *known, const uint64_t *frame, const char *function,
                                      bool *truncated)
{
    uint32_t number;
    *truncated = false;
    if (ffm_python_is_readable()) /* its frames are not told by words of the stack */
        return ffm_stack_of_caller(frame, function, truncated);
    if (find(known, frame, function, &number))
        return number;
    const uint32_t modules = ffm_modules_generation();
    number = ffm_stack_of_caller(frame, function, truncated);
    if (!*truncated)
        note(known, frame, function, number, modules);
    return number;
}
