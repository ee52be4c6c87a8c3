#include "program_handlers.h"

#include <errno.h>
#include <stddef.h>

#include "guarded.h"
#include "signal_mask.h"

enum { SET_BYTES = 8, SIGNALS = 64 };

static ffm_handler_listener before_handlers; /* NULL if nobody wants to know */
static uint64_t entered[SIGNALS + 1];        /* the program's handlers that `enter` continues in, by signal */
static bool interrupts;                      /* whether the program may have handlers */

static ffm_signals_mover move_frame; /* NULL if frames stay where they are */
static ffm_signals_keeper keep;      /* likewise */
static uint64_t on_stack;            /* one bit for each signal whose handler asks for an alternate stack */

/* Continue in a handler, with a stack pointer, its arguments, and an alternate stack for others. */
_Noreturn void ffm_signals_continue(uint64_t stack, uint64_t handler, uint64_t number, uint64_t info, uint64_t context,
                                    const stack_t *rest) __attribute__((visibility("hidden")));
__asm__(".text\n"
        ".globl ffm_signals_continue\n"
        ".hidden ffm_signals_continue\n"
        ".type ffm_signals_continue, @function\n"
        "ffm_signals_continue:\n"
        "mov %rdi, %rsp\n"
        "mov %rsi, %rbx\n"
        "mov %rdx, %rbp\n"
        "mov %rcx, %r12\n"
        "mov %r8, %r13\n"
        "mov %r9, %rdi\n"
        "xor %esi, %esi\n"
        "mov $131, %eax\n" /* sigaltstack */
        "syscall\n"
        "mov %rbp, %rdi\n"
        "mov %r12, %rsi\n"
        "mov %r13, %rdx\n"
        "xor %eax, %eax\n"
        "jmp *%rbx\n"
        ".size ffm_signals_continue, . - ffm_signals_continue\n");

void ffm_signals_move_frames(ffm_signals_mover mover, ffm_signals_keeper keeper)
{
    move_frame = mover;
    keep = keeper;
}

static uint64_t *mask_of(ucontext_t *interrupted)
{
    return (uint64_t *)&interrupted->uc_sigmask;
}

static __thread ffm_signals_call *elsewhere __attribute__((tls_model("initial-exec")));

/* The last call made on the same stack. A handler of the program may switch to a coroutine that was interrupted within
 * an earlier call of the thread, and that call then goes on. */
static ffm_signals_call **last_at(uint64_t stack)
{
    ffm_signals_call **kept = keep == NULL ? NULL : keep(stack);
    return kept == NULL ? &elsewhere : kept;
}

void ffm_signals_call_begins(ffm_signals_call *call, ucontext_t *interrupted)
{
    ffm_signals_call **last = last_at((uint64_t)call);
    *call = (ffm_signals_call){.interrupted = interrupted, .at_start = *mask_of(interrupted), .before = *last};
    *last = call;
    if (__atomic_load_n(&interrupts, __ATOMIC_RELAXED))
        ffm_signals_set_mask(call->at_start);
}

void ffm_signals_call_over(const ffm_signals_call *call)
{
    if (__atomic_load_n(&interrupts, __ATOMIC_RELAXED))
        ffm_signals_set_mask(~FFM_SIGNALS_OURS);
    *last_at((uint64_t)call) = call->before;
}

/* Whether code with this stack pointer makes the call. A handler that was left by a jump has left its call as well. */
static bool is_made_at(const ffm_signals_call *call, uint64_t stack)
{
    enum { DEPTH = 4096 }; /* more than what makes the call needs */
    return call != NULL && stack < (uint64_t)call && (uint64_t)call - stack < DEPTH;
}

void ffm_program_handlers_continue(int number, uint64_t handler, const siginfo_t *info, ucontext_t *context, bool asks,
                                   bool told)
{
    const uint64_t interrupted = (uint64_t)context->uc_mcontext.gregs[REG_RSP];
    const ffm_signals_call *made = *last_at(interrupted);
    const ucontext_t *of_program = is_made_at(made, interrupted) ? made->interrupted : context;
    const ffm_signal_entry entry = {
        .frame = context, .program = (uint64_t)of_program->uc_mcontext.gregs[REG_RSP], .asks = asks, .told = told};
    stack_t rest;
    const uint64_t moved = move_frame == NULL ? 0 : move_frame(&entry, &rest);
    const uint64_t shift = moved - ((uint64_t)context - sizeof(uint64_t));
    if (moved != 0)
        ffm_signals_continue(moved, handler, (uint64_t)number, (uint64_t)info + shift, (uint64_t)context + shift,
                             &rest);
}

/* What was said of its end goes to the kernel's frame, in bits that the kernel and programs ignore. */
static const uint64_t TOLD = 1ULL << 62, IN_OURS = 1ULL << 63;

bool ffm_program_handlers_begin(ucontext_t *context)
{
    const ffm_handler_end end = before_handlers(context);
    context->uc_flags |= (end == FFM_END_UNTOLD ? 0 : TOLD) | (end == FFM_END_TOLD_IN_OURS ? IN_OURS : 0);
    return end != FFM_END_UNTOLD;
}

/* We jump to the program's handler (the compiler does this at -O2), so that it finds the stack as it would be without
 * us. The kernel gives all three arguments to any handler. */
static void enter(int number, siginfo_t *info, void *context)
{
    const uint64_t handler = __atomic_load_n(&entered[number], __ATOMIC_ACQUIRE);
    const bool asks = __atomic_load_n(&on_stack, __ATOMIC_RELAXED) & 1ULL << (number - 1);
    const bool told = ffm_program_handlers_begin(context);
    if (told)
        *mask_of(context) |= ffm_signals_withheld();
    ffm_program_handlers_continue(number, handler, info, context, asks, told);
    ((ffm_signal_handler)(uintptr_t)handler)(number, info, context);
}

void ffm_program_handlers_tell(ffm_handler_listener before)
{
    if (before_handlers == NULL) /* otherwise this is a forked child */
        ffm_signals_need_not_block();
    before_handlers = before;
}

bool ffm_program_handlers_are_told(void)
{
    return before_handlers != NULL;
}

void ffm_program_handlers_interrupt(void)
{
    if (!__atomic_exchange_n(&interrupts, true, __ATOMIC_SEQ_CST))
        ffm_signals_block();
}

bool ffm_program_handlers_may_interrupt(void)
{
    return __atomic_load_n(&interrupts, __ATOMIC_RELAXED);
}

static bool may_be_preceded(int number)
{
    return number > 0 && number <= SIGNALS && before_handlers != NULL;
}

bool ffm_program_handlers_precede(int number, const ffm_signal_action *wanted)
{
    return may_be_preceded(number) && wanted != NULL && ffm_signal_action_calls(wanted) &&
           wanted->handler != (uint64_t)(uintptr_t)enter;
}

int64_t ffm_program_handlers_install(int number, const ffm_signal_action *wanted, bool preceded,
                                     ffm_signal_action *before)
{
    if (!may_be_preceded(number))
        return ffm_signal_action_install(number, wanted, before);
    const uint64_t previous = __atomic_load_n(&entered[number], __ATOMIC_ACQUIRE);
    ffm_signal_action ours, replaced = {0};
    if (preceded) {
        ours = *wanted;
        __atomic_store_n(&entered[number], wanted->handler, __ATOMIC_RELEASE);
        ours.handler = (uint64_t)(uintptr_t)enter;
        if (ours.flags & SA_ONSTACK)
            __atomic_or_fetch(&on_stack, 1ULL << (number - 1), __ATOMIC_RELAXED);
        else
            __atomic_and_fetch(&on_stack, ~(1ULL << (number - 1)), __ATOMIC_RELAXED);
        wanted = &ours;
    }
    const int64_t result = ffm_signal_action_install(number, wanted, &replaced);
    if (result != 0) {
        __atomic_store_n(&entered[number], previous, __ATOMIC_RELEASE);
        return result;
    }
    if (replaced.handler == (uint64_t)(uintptr_t)enter)
        replaced.handler = previous;
    return before == NULL || ffm_guarded_write((uint64_t)before, &replaced, sizeof replaced) ? 0 : -EFAULT;
}

ffm_handler_end ffm_signals_program_returns(uint64_t frame)
{
    ucontext_t context; /* the frame begins with it */
    const uint64_t place_of_mask = frame + offsetof(ucontext_t, uc_sigmask);
    if (!ffm_guarded_read(&context, frame, offsetof(ucontext_t, uc_sigmask) + SET_BYTES))
        return FFM_END_UNTOLD;
    const uint64_t flags = context.uc_flags, plain = flags & ~(TOLD | IN_OURS);
    uint64_t mask = *mask_of(&context);
    ffm_signals_withhold(&mask);
    ffm_guarded_write(place_of_mask, &mask, sizeof mask);
    ffm_guarded_write(frame, &plain, sizeof plain);
    const uint64_t interrupted = (uint64_t)context.uc_mcontext.gregs[REG_RSP];
    const ffm_signals_call *made = *last_at(interrupted);
    if (is_made_at(made, interrupted)) {
        const uint64_t changed = mask ^ made->at_start;
        uint64_t *of_thread = mask_of(made->interrupted);
        *of_thread = (*of_thread & ~changed) | (mask & changed);
    }
    if (!(flags & TOLD))
        return FFM_END_UNTOLD;
    return flags & IN_OURS ? FFM_END_TOLD_IN_OURS : FFM_END_TOLD;
}
