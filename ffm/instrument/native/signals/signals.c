#include "signals.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "guarded.h"
#include "instruments.h"
#include "kernel.h"
#include "signal_mask.h"

enum { OURS = 4, SIGNALS = 64 };

/* The C library's own handler for this one, which programs with threads have, calls setuid and the like in a thread for
 * another one that asks it to by tgkill (glibc's nptl/nptl_setxid.c). */
enum { SETXID = 33 };

static const uint64_t RESTORER = 0x04000000; /* SA_RESTORER: the kernel's flag, in no header of the C library */

static const int numbers[OURS] = {SIGSEGV, SIGBUS, SIGTRAP, SIGSYS};

static struct {
    bool open;
    ffm_signal_action ours[OURS];
    ffm_signal_action program[OURS]; /* what the program requested */
} handlers;

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

static ffm_signal_action *action_of_program(int place)
{
    return child != NULL ? &child->program[place] : &handlers.program[place];
}

/* From now on the handler of system calls begins with all signals blocked. */
static void begin_to_interrupt(void)
{
    const int place = place_of(SIGSYS);
    handlers.ours[place].mask = ~FFM_SIGNALS_OURS;
    ffm_program_handlers_interrupt();
    ffm_signals_await_holds();
    if (__atomic_load_n(&handlers.open, __ATOMIC_ACQUIRE))
        ffm_signal_action_install(SIGSYS, &handlers.ours[place], NULL);
}

/* Install a handler of the program. Ours precedes it, except in a child that runs in the program's memory: which
 * handler ours continues in is the program's to say. */
static int64_t install_of_program(int number, const ffm_signal_action *wanted, ffm_signal_action *before)
{
    const bool preceded = child == NULL && ffm_program_handlers_precede(number, wanted);
    if (preceded && number != SETXID && !ffm_program_handlers_may_interrupt())
        begin_to_interrupt();
    return ffm_program_handlers_install(number, wanted, preceded, before);
}

void ffm_signals_sent_to_thread(uint64_t number)
{
    if (number == SETXID && ffm_program_handlers_are_told() && !ffm_program_handlers_may_interrupt())
        begin_to_interrupt();
}

void ffm_signals_before_handlers(ffm_handler_listener before)
{
    ffm_program_handlers_tell(before);
    for (int number = 1; number <= SIGNALS; number++) {
        ffm_signal_action action;
        if (place_of(number) < 0 && ffm_signal_action_install(number, NULL, &action) == 0 &&
            ffm_signal_action_calls(&action) && !ffm_instruments_hold(action.handler))
            install_of_program(number, &action, NULL);
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
            .mask = numbers[i] == SIGSYS && !ffm_program_handlers_may_interrupt() ? 0 : ~FFM_SIGNALS_OURS,
        };
        if (ffm_signal_action_install(numbers[i], &action, &handlers.program[i]) != 0)
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
    state->withheld = ffm_signals_withheld();
    for (int i = 0; i < OURS; i++)
        ffm_signal_action_install(numbers[i], &handlers.ours[i], NULL);
    child = state;
    ffm_signals_block();
    return true;
}

void ffm_signals_child_over(void)
{
    if (child == NULL)
        return;
    ffm_signals_withhold(&child->withheld);
    ffm_kernel(SYS_munmap, (uint64_t)child, sizeof *child, 0, 0);
    child = NULL;
    ffm_signals_need_not_block();
}

bool ffm_signals_in_child(void)
{
    return child != NULL;
}

void ffm_signals_after_fork(void)
{
    ffm_signals_holds_after_fork();
    if (child == NULL)
        return;
    memcpy(handlers.program, child->program, sizeof handlers.program);
    child = NULL;
    ffm_signals_need_not_block();
}

/* Let the signal occur again, with the effect that it has without us. Only an access to memory repeats by itself. A
 * sent signal does not, nor does a trap, whose instruction is over, nor a refused system call, which was left out. */
static void let_go(int number, bool sent)
{
    const ffm_signal_action usual = {.handler = (uint64_t)SIG_DFL};
    if (child == NULL)
        handlers.open = false;
    ffm_signal_action_install(number, &usual, NULL);
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
    const bool told = ffm_program_handlers_are_told() && ffm_program_handlers_begin(context) && action.restorer != 0;
    if (action.flags & SA_RESETHAND)
        *wanted = (ffm_signal_action){.handler = (uint64_t)SIG_DFL};
    uint64_t *mask = (uint64_t *)&((ucontext_t *)context)->uc_sigmask; /* the kernel restores it */
    ffm_signals_set_mask((*mask | action.mask) & ~FFM_SIGNALS_OURS);
    uint64_t *return_to = (uint64_t *)context - 1;
    const uint64_t ours = *return_to;
    const stack_t stack = ((ucontext_t *)context)->uc_stack;
    *mask |= told ? ffm_signals_withheld() : 0;
    *return_to = told ? action.restorer : ours;
    ffm_program_handlers_continue(number, action.handler, info, context, action.flags & SA_ONSTACK, told);
    *return_to = ours;
    ((ucontext_t *)context)->uc_stack = stack;
    *mask |= ffm_signals_withheld();
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
        return install_of_program(number, wanted == NULL ? NULL : &copy, before);
    }
    if (before != NULL && !ffm_guarded_write((uint64_t)before, action_of_program(place), sizeof *before))
        return -EFAULT;
    if (wanted != NULL)
        *action_of_program(place) = copy;
    return 0;
}
