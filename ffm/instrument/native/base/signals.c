#include "signals.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "guarded.h"
#include "instruments.h"
#include "kernel.h"

enum { OURS = 4, SET_BYTES = 8, SIGNALS = 64 };

static const uint64_t RESTORER = 0x04000000; /* SA_RESTORER: the kernel's flag, in no header of the C library */

static const int numbers[OURS] = {SIGSEGV, SIGBUS, SIGTRAP, SIGSYS};

static struct {
    bool open;
    ffm_signal_action ours[OURS];
    ffm_signal_action program[OURS]; /* what the program requested */
} handlers;

static ffm_handler_end (*before_handlers)(ucontext_t *); /* NULL if nobody wants to know */
static uint64_t entered[SIGNALS + 1]; /* the program's handlers that `enter` continues in, by signal */

/* Those of ours that the program believes to be blocked. */
static __thread uint64_t withheld __attribute__((tls_model("initial-exec")));

/* Of the child that runs in this thread's memory; NULL if there is none. In pages of its own, because thread-local
 * variables have little room. */
typedef struct {
    ffm_signal_action program[OURS]; /* what the child requested */
    uint64_t withheld;               /* of its parent */
} sharing;

static __thread sharing *child __attribute__((tls_model("initial-exec")));

/* Ends a handler. It is in our own code, so that it is not a system call of the program; unwinders recognize a
 * handler's frame by these very bytes. */
__asm__(".text\n"
        ".balign 16\n"
        ".globl ffm_signals_return\n"
        ".hidden ffm_signals_return\n"
        ".type ffm_signals_return, @function\n"
        "nop\n"
        "ffm_signals_return:\n"
        "mov $15, %rax\n"
        "syscall\n"
        ".size ffm_signals_return, . - ffm_signals_return\n");

static int place_of(int number)
{
    for (int i = 0; i < OURS; i++)
        if (numbers[i] == number)
            return i;
    return -1;
}

/* Whether the program may have handlers, which must not interrupt ours but where those make its system calls. */
static bool interrupts;

static int64_t install(int number, const ffm_signal_action *wanted, ffm_signal_action *before)
{
    return ffm_kernel(SYS_rt_sigaction, (uint64_t)number, (uint64_t)wanted, (uint64_t)before, SET_BYTES);
}

static ffm_signal_action *action_of_program(int place)
{
    return child != NULL ? &child->program[place] : &handlers.program[place];
}

void ffm_signals_unblock(void)
{
    const uint64_t ours = FFM_SIGNALS_OURS;
    ffm_kernel(SYS_rt_sigprocmask, SIG_UNBLOCK, (uint64_t)&ours, 0, SET_BYTES);
}

static bool is_function(const ffm_signal_action *action)
{
    return action->handler != (uint64_t)SIG_DFL && action->handler != (uint64_t)SIG_IGN;
}

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
 * an earlier call of the thread, and which goes on with it. */
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

/* Go on in the program's handler where it would run without us, unless it is to stay here. */
static void continue_moved(int number, uint64_t handler, const siginfo_t *info, ucontext_t *context, bool asks,
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

/* Whether the end of the program's handler will be told. */
static bool begin_handler(ucontext_t *context)
{
    const ffm_handler_end end = before_handlers(context);
    context->uc_flags |= (end == FFM_END_UNTOLD ? 0 : TOLD) | (end == FFM_END_TOLD_IN_OURS ? IN_OURS : 0);
    return end != FFM_END_UNTOLD;
}

/* The program's handler is jumped to (the compiler does this at -O2), and finds the stack as without us. The kernel
 * gives all three arguments to any handler. */
static void enter(int number, siginfo_t *info, void *context)
{
    const uint64_t handler = __atomic_load_n(&entered[number], __ATOMIC_ACQUIRE);
    const bool asks = __atomic_load_n(&on_stack, __ATOMIC_RELAXED) & 1ULL << (number - 1);
    const bool told = begin_handler(context);
    if (told)
        *mask_of(context) |= withheld;
    continue_moved(number, handler, info, context, asks, told);
    ((ffm_signal_handler)(uintptr_t)handler)(number, info, context);
}

/* From now on the handler of system calls begins with all signals blocked. */
static void begin_to_interrupt(void)
{
    const int place = place_of(SIGSYS);
    handlers.ours[place].mask = ~FFM_SIGNALS_OURS;
    __atomic_store_n(&interrupts, true, __ATOMIC_RELAXED);
    if (__atomic_load_n(&handlers.open, __ATOMIC_ACQUIRE))
        install(SIGSYS, &handlers.ours[place], NULL);
}

/* Install a handler of the program, which `enter` precedes, except in a child that runs in its memory: which handler
 * that continues in is the program's. The answer is that of the kernel without it. */
static int64_t install_entered(int number, const ffm_signal_action *wanted, ffm_signal_action *before)
{
    if (number <= 0 || number > SIGNALS || before_handlers == NULL)
        return install(number, wanted, before);
    const uint64_t previous = __atomic_load_n(&entered[number], __ATOMIC_ACQUIRE);
    ffm_signal_action ours, replaced = {0};
    if (wanted != NULL && child == NULL && is_function(wanted) && wanted->handler != (uint64_t)(uintptr_t)enter) {
        if (!__atomic_load_n(&interrupts, __ATOMIC_RELAXED))
            begin_to_interrupt();
        ours = *wanted;
        __atomic_store_n(&entered[number], wanted->handler, __ATOMIC_RELEASE);
        ours.handler = (uint64_t)(uintptr_t)enter;
        if (ours.flags & SA_ONSTACK)
            __atomic_or_fetch(&on_stack, 1ULL << (number - 1), __ATOMIC_RELAXED);
        else
            __atomic_and_fetch(&on_stack, ~(1ULL << (number - 1)), __ATOMIC_RELAXED);
        wanted = &ours;
    }
    const int64_t result = install(number, wanted, &replaced);
    if (result != 0) {
        __atomic_store_n(&entered[number], previous, __ATOMIC_RELEASE);
        return result;
    }
    if (replaced.handler == (uint64_t)(uintptr_t)enter)
        replaced.handler = previous;
    return before == NULL || ffm_guarded_write((uint64_t)before, &replaced, sizeof replaced) ? 0 : -EFAULT;
}

void ffm_signals_before_handlers(ffm_handler_end (*before)(ucontext_t *interrupted))
{
    before_handlers = before;
    for (int number = 1; number <= SIGNALS; number++) {
        ffm_signal_action action;
        if (place_of(number) < 0 && install(number, NULL, &action) == 0 && is_function(&action) &&
            !ffm_instruments_hold(action.handler))
            install_entered(number, &action, NULL);
    }
}

bool ffm_signals_open(ffm_signal_handler fault, ffm_signal_handler trap, ffm_signal_handler system_call)
{
    const ffm_signal_handler ours[OURS] = {fault, fault, trap, system_call};
    if (handlers.open) /* in a forked child, which has its parent's */
        return true;
    for (int i = 0; i < OURS; i++) {
        const ffm_signal_action action = {
            .handler = (uint64_t)ours[i],
            .flags = RESTORER | SA_SIGINFO | SA_ONSTACK | SA_NODEFER | (numbers[i] == SIGSYS ? SA_RESTART : 0),
            .restorer = (uint64_t)ffm_signals_return,
            /* The program's system calls continue inside the handler of SIGSYS, and can be interrupted as usual. */
            .mask = numbers[i] == SIGSYS && !interrupts ? 0 : ~FFM_SIGNALS_OURS,
        };
        if (install(numbers[i], &action, &handlers.program[i]) != 0)
            return false;
        handlers.ours[i] = action;
    }
    ffm_signals_unblock();
    __atomic_store_n(&handlers.open, true, __ATOMIC_RELEASE);
    return true;
}

bool ffm_signals_child_begins(void)
{
    const uint64_t arguments[6] = {0, sizeof *child, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, UINT64_MAX,
                                   0};
    const int64_t pages = ffm_kernel_call(SYS_mmap, arguments);
    if (pages < 0)
        return false;
    sharing *state = (sharing *)pages; // NOLINT(performance-no-int-to-ptr)
    memcpy(state->program, handlers.program, sizeof state->program);
    state->withheld = withheld;
    for (int i = 0; i < OURS; i++)
        install(numbers[i], &handlers.ours[i], NULL);
    child = state;
    return true;
}

void ffm_signals_child_over(void)
{
    if (child == NULL)
        return;
    withheld = child->withheld;
    ffm_kernel(SYS_munmap, (uint64_t)child, sizeof *child, 0, 0);
    child = NULL;
}

bool ffm_signals_in_child(void)
{
    return child != NULL;
}

void ffm_signals_after_fork(void)
{
    if (child == NULL)
        return;
    memcpy(handlers.program, child->program, sizeof handlers.program);
    child = NULL;
}

static __thread uint32_t holds __attribute__((tls_model("initial-exec")));
static __thread uint64_t mask_before __attribute__((tls_model("initial-exec"))); /* the outermost hold */

void ffm_signals_hold(void)
{
    if (holds == 0) /* a handler that runs before the mask is set holds and releases by itself */
        mask_before = ffm_signals_set_mask(~FFM_SIGNALS_OURS);
    holds++;
}

void ffm_signals_release(void)
{
    const uint64_t mask = mask_before;
    if (--holds == 0)
        ffm_signals_set_mask(mask);
}

/* Let the signal occur again, with its effect without us. Only an access to memory repeats by itself: what was sent
 * does not, nor does a trap, whose instruction is over, nor a refused system call, which was left out. */
static void let_go(int number, bool sent)
{
    const ffm_signal_action usual = {.handler = (uint64_t)SIG_DFL};
    if (child == NULL)
        handlers.open = false;
    install(number, &usual, NULL);
    if (sent || number == SIGTRAP || number == SIGSYS)
        ffm_kernel(SYS_tgkill, (uint64_t)ffm_kernel(SYS_getpid, 0, 0, 0, 0),
                   (uint64_t)ffm_kernel(SYS_gettid, 0, 0, 0, 0), (uint64_t)number, 0);
}

void ffm_signals_pass(int number, siginfo_t *info, void *context)
{
    ffm_signal_action *wanted = action_of_program(place_of(number));
    const ffm_signal_action action = *wanted;
    const bool sent = info->si_code <= 0; /* by a process, not by the CPU */
    if (action.handler == (uint64_t)SIG_IGN && sent)
        return;
    if (action.handler == (uint64_t)SIG_DFL || action.handler == (uint64_t)SIG_IGN) {
        let_go(number, sent);
        return;
    }
    const bool told = before_handlers != NULL && begin_handler(context) && action.restorer != 0;
    if (action.flags & SA_RESETHAND)
        *wanted = (ffm_signal_action){.handler = (uint64_t)SIG_DFL};
    uint64_t *mask = mask_of(context); /* the kernel restores it */
    ffm_signals_set_mask((*mask | action.mask) & ~FFM_SIGNALS_OURS);
    uint64_t *return_to = (uint64_t *)context - 1;
    const uint64_t ours = *return_to;
    const stack_t stack = ((ucontext_t *)context)->uc_stack;
    *mask |= told ? withheld : 0;
    *return_to = told ? action.restorer : ours;
    continue_moved(number, action.handler, info, context, action.flags & SA_ONSTACK, told);
    *return_to = ours;
    ((ucontext_t *)context)->uc_stack = stack;
    *mask |= withheld;
    if (action.flags & SA_SIGINFO)
        ((ffm_signal_handler)action.handler)(number, info, context);
    else
        ((void (*)(int))action.handler)(number);
    ffm_signals_withhold(mask);
}

int64_t ffm_signals_program_action(int number, const ffm_signal_action *wanted, ffm_signal_action *before)
{
    ffm_signal_action copy = {0};
    if (wanted != NULL && !ffm_guarded_read(&copy, (uint64_t)wanted, sizeof copy))
        return -EFAULT;
    int place = place_of(number);
    if (place < 0 || !__atomic_load_n(&handlers.open, __ATOMIC_ACQUIRE)) {
        copy.mask &= ~FFM_SIGNALS_OURS;
        return install_entered(number, wanted == NULL ? NULL : &copy, before);
    }
    if (before != NULL && !ffm_guarded_write((uint64_t)before, action_of_program(place), sizeof *before))
        return -EFAULT;
    if (wanted != NULL)
        *action_of_program(place) = copy;
    return 0;
}

void ffm_signals_withhold(uint64_t *mask)
{
    withheld = *mask & FFM_SIGNALS_OURS;
    *mask &= ~FFM_SIGNALS_OURS;
}

int64_t ffm_signals_program_mask(int how, const uint64_t *set, uint64_t *before, uint64_t *mask)
{
    const uint64_t old = (*mask & ~FFM_SIGNALS_OURS) | withheld;
    uint64_t wanted = old;
    uint64_t given = 0;
    /* Programs use this to test whether memory is readable: the system reads the set first. */
    if (set != NULL && !ffm_guarded_read(&given, (uint64_t)set, sizeof given))
        return -EFAULT;
    if (set != NULL) {
        switch (how) {
        case SIG_BLOCK:
            wanted = old | given;
            break;
        case SIG_UNBLOCK:
            wanted = old & ~given;
            break;
        case SIG_SETMASK:
            wanted = given;
            break;
        default:
            return -EINVAL;
        }
    }
    if (before != NULL && !ffm_guarded_write((uint64_t)before, &old, sizeof old))
        return -EFAULT;
    withheld = wanted & FFM_SIGNALS_OURS;
    *mask = wanted & ~FFM_SIGNALS_OURS;
    return 0;
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
