#include "dispatch.h"

#include <errno.h>
#include <link.h>
#include <linux/sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "aside.h"
#include "births.h"
#include "blocked_calls.h"
#include "calls_in_progress.h"
#include "closed_memory.h"
#include "dispatch_places.h"
#include "guarded.h"
#include "handlers.h"
#include "handovers.h"
#include "kernel.h"
#include "keys.h"
#include "masked_calls.h"
#include "own_dispatch.h"
#include "questions.h"
#include "quick_places.h"
#include "ranges.h"
#include "resting.h"
#include "signal_mask.h"
#include "signal_stacks.h"
#include "signals.h"
#include "system_calls.h"
#include "thread_memory.h"
#include "thread_words.h"
#include "threads.h"
#include "watched.h"

#ifndef PR_SYS_DISPATCH_ON
#define PR_SYS_DISPATCH_ON 1
#endif

enum { LET_THROUGH = 0, INTERCEPT = 1 }; /* what the kernel reads (linux/prctl.h, SYSCALL_DISPATCH_FILTER_…) */
enum { USER_DISPATCH = 2 };              /* si_code SYS_USER_DISPATCH */

static struct {
    bool open, forked;
    uint64_t code, code_bytes; /* the collector's own */
} dispatch;

static __thread volatile char selector __attribute__((tls_model("initial-exec")));
static __thread pid_t joined __attribute__((tls_model("initial-exec")));

bool ffm_dispatch_pause(void)
{
    bool before = selector == INTERCEPT;
    selector = LET_THROUGH;
    return before;
}

void ffm_dispatch_resume(bool before)
{
    selector = before ? INTERCEPT : LET_THROUGH;
}

bool ffm_dispatch_intercepts(void)
{
    return selector == INTERCEPT;
}

/* ---- calls that cannot be made from inside a handler ------------------------------------------------------------- */

enum { PAGE = 4096, STACK_BELOW = 8 << 20 }; /* of a clone: only the upper end of its stack is known */

static void run_on(uint64_t control_block, uint64_t start, uint64_t end)
{
    ffm_thread_memory_note(control_block, start, end);
    ffm_watch_spare(start, end);
}

/* A new thread's stack, its thread-local variables and its control block, which glibc arranges in this order. */
static void note_thread(uint64_t control_block, uint64_t stack, uint64_t stack_end)
{
    ffm_thread_memory_gone(control_block); /* of an earlier thread */
    if (stack_end <= control_block && control_block - stack_end < STACK_BELOW)
        stack_end = control_block;
    run_on(control_block, stack, stack_end);
    run_on(control_block, control_block - PAGE, control_block + PAGE);
}

static bool begins_thread(uint64_t call, const uint64_t *arguments)
{
    if (call == SYS_clone3) {
        struct clone_args wanted;
        if (!ffm_guarded_read(&wanted, arguments[0], offsetof(struct clone_args, set_tid)))
            return false; /* the kernel refuses it */
        if (wanted.flags & CLONE_THREAD)
            note_thread(wanted.tls, wanted.stack, wanted.stack + wanted.stack_size);
        return (wanted.flags & CLONE_THREAD) != 0;
    }
    if (call == SYS_clone && arguments[0] & CLONE_THREAD)
        note_thread(arguments[4], arguments[1] - STACK_BELOW, arguments[1]);
    return call == SYS_clone && (arguments[0] & CLONE_THREAD) != 0;
}

static uint64_t control_block_of(uint64_t call, const uint64_t *arguments)
{
    uint64_t block = arguments[4];
    if (call == SYS_clone3)
        ffm_guarded_read(&block, arguments[0] + offsetof(struct clone_args, tls), sizeof block);
    return block;
}

/* A thread of the driver that is started in a call that is not recorded. Those started in other calls are not seen at
 * all. */
static bool is_of_driver(const ffm_registers *from)
{
    selector = INTERCEPT; /* the unwinder blocks signals for a while */
    const bool of_driver = ffm_births_by_driver(from);
    selector = LET_THROUGH;
    return of_driver;
}

/* A new thread is about to join, or a process that shares the memory. Another process may come to the gate, where
 * nothing may be protected, until the program continues. */
static bool begins(ucontext_t *context, uint64_t call, const uint64_t *arguments)
{
    greg_t *registers = context->uc_mcontext.gregs;
    const ffm_registers from = ffm_registers_in(context);
    ffm_births_before(call, arguments, &from);
    if (begins_thread(call, arguments)) {
        /* If the library does not start it, it has other thread-local variables than ours, or those of this thread. */
        if (!ffm_births_by_library(&from) || is_of_driver(&from))
            return ffm_dispatch_redirect(registers, FFM_PLACE_PLAIN);
        ffm_handovers_starts(control_block_of(call, arguments));
        ffm_threads_begin();
        ffm_resting_end();
        if (ffm_dispatch_redirect(registers, FFM_PLACE_THREAD))
            return true;
        ffm_threads_lose();
        ffm_watch_give_up();
        return false;
    }
    if (ffm_births_share(call, arguments) && ffm_dispatch_redirect(registers, FFM_PLACE_SHARING))
        return true;
    ffm_watch_before_fork();
    if (ffm_dispatch_redirect(registers, FFM_PLACE_PROCESS))
        return true;
    ffm_watch_give_up();
    ffm_watch_forked();
    return false;
}

void ffm_dispatch_forked(void)
{
    const bool before = ffm_dispatch_pause();
    ffm_watch_forked();
    ffm_dispatch_resume(before);
}

static uint64_t control_block_here(void)
{
    return (uint64_t)__builtin_thread_pointer();
}

/* ---- all others -------------------------------------------------------------------------------------------------- */

/* PTRACE_TRACEME: to be traced by the parent. The first process's parent is ffm, which does not trace: each signal,
 * also those of the watch, would stop the program for ever. So it gets the kernel's answers, but is not traced. */
static int64_t trace_me(const uint64_t *arguments)
{
    static bool traced;
    if (dispatch.forked || ffm_signals_in_child())
        return ffm_kernel_call(SYS_ptrace, arguments);
    return __atomic_exchange_n(&traced, true, __ATOMIC_RELAXED) ? -EPERM : 0;
}

static int64_t make(uint64_t call, const uint64_t *a, ucontext_t *context)
{
    switch (call) {
    case SYS_ptrace:
        return a[0] == PTRACE_TRACEME ? trace_me(a) : ffm_kernel_call(call, a);
    case SYS_rt_sigaction:
        return ffm_signals_program_action((int)a[0], (const ffm_signal_action *)a[1], (ffm_signal_action *)a[2]);
    case SYS_rt_sigprocmask:
        return ffm_signals_program_mask((int)a[0], (const uint64_t *)a[1], (uint64_t *)a[2],
                                        (uint64_t *)&context->uc_sigmask);
    case SYS_sigaltstack:
        return ffm_signal_stack_program(a, context);
    case SYS_pkey_alloc:
        return ffm_keys_program(a, context);
    case SYS_prctl:
        return a[0] == FFM_SET_SYSCALL_USER_DISPATCH ? ffm_own_dispatch_set(a) : ffm_kernel_call(call, a);
    default:
        return ffm_masked_call_is(call) ? ffm_masked_call(call, a) : ffm_kernel_call(call, a);
    }
}

/* Handlers will run there. */
static void note_alternate(uint64_t given)
{
    stack_t stack;
    if (ffm_guarded_read(&stack, given, sizeof stack) && !(stack.ss_flags & SS_DISABLE))
        run_on(control_block_here(), (uint64_t)stack.ss_sp, (uint64_t)stack.ss_sp + stack.ss_size);
}

/* The kernel's answer to a call. The memory that the call uses is open meanwhile, or the call is made again. */
static int64_t answer(uint64_t call, const uint64_t *arguments, ucontext_t *context)
{
    const ffm_registers from = ffm_registers_in(context);
    const bool admitted = (ffm_system_call_is_known(call) || ffm_keys_admitted_to(context)) && ffm_keys_admit();
    ffm_call_in_progress progress;
    int64_t result;
    bool again;
    do {
        ffm_call_in_progress_begins(&progress, call, admitted);
        ffm_system_call_before(call, arguments, &from);
        if (ffm_blocked_call_may_sleep(call, arguments) && !ffm_signals_in_child())
            ffm_threads_sleep();
        ffm_signals_call made;
        selector = INTERCEPT; /* for a handler of the program that interrupts it */
        ffm_signals_call_begins(&made, context);
        result = make(call, arguments, context);
        ffm_signals_call_over(&made);
        selector = LET_THROUGH;
        ffm_system_call_after();
        ffm_resting_wake();
        again = result == -EFAULT && ffm_call_in_progress_again(&progress, ffm_ranges_overlap);
        ffm_call_in_progress_over(&progress);
    } while (again);
    ffm_keys_expel();
    return result;
}

/* No system call here is the C library's, which the program may want to see. */
ffm_handler_end ffm_dispatch_handler_begins(void)
{
    if (joined == 0 || joined != (pid_t)ffm_kernel(SYS_gettid, 0, 0, 0, 0))
        return FFM_END_UNTOLD;
    ffm_aside_interrupted();
    const bool in_ours = selector == LET_THROUGH; /* such as a call of the driver */
    selector = INTERCEPT;
    return in_ours ? FFM_END_TOLD_IN_OURS : FFM_END_TOLD;
}

/* A handler of the program ends. Whether the thread's next system call should be intercepted. */
static bool returns(ucontext_t *context)
{
    const uint64_t frame = (uint64_t)context->uc_mcontext.gregs[REG_RSP];
    const ffm_handler_end end = ffm_signals_program_returns(frame);
    if (end != FFM_END_UNTOLD)
        ffm_signal_stack_returns(frame, context);
    context->uc_mcontext.gregs[REG_RIP] = (greg_t)ffm_signals_return;
    return end != FFM_END_TOLD_IN_OURS;
}

/* Whether the thread's next system call should be intercepted. */
static bool intercepted(ucontext_t *context)
{
    greg_t *registers = context->uc_mcontext.gregs;
    const uint64_t call = (uint64_t)registers[REG_RAX];
    const uint64_t arguments[6] = {(uint64_t)registers[REG_RDI], (uint64_t)registers[REG_RSI],
                                   (uint64_t)registers[REG_RDX], (uint64_t)registers[REG_R10],
                                   (uint64_t)registers[REG_R8],  (uint64_t)registers[REG_R9]};
    if (ffm_ranges_held()) { /* our own: a hook of a function of the program records what it found */
        registers[REG_RAX] = ffm_kernel_call(call, arguments);
        return true;
    }
    switch (call) {
    case SYS_rt_sigreturn:
        return returns(context);
    case SYS_clone:
    case SYS_clone3:
    case SYS_fork:
    case SYS_vfork:
        return begins(context, call, arguments);
    case SYS_set_tid_address:
        ffm_thread_words_cleared(arguments[0]);
        break;
    case SYS_sigaltstack:
        note_alternate(arguments[0]);
        if (!ffm_signal_stack_known())
            return ffm_dispatch_redirect(registers, FFM_PLACE_PLAIN);
        break;
    case SYS_exit:
        if (ffm_signals_in_child())
            break;
        ffm_thread_words_end();
        ffm_thread_memory_gone(control_block_here());
        ffm_signal_stack_release();
        ffm_resting_thread_ends();
        ffm_threads_end();
        break;
    default:
        break;
    }
    ffm_plain_use use;
    if (ffm_system_call_is_plain(call, arguments, &use))
        ffm_quick_place_called(context);
    registers[REG_RAX] = answer(call, arguments, context);
    return true;
}

void ffm_dispatch_signal(int number, siginfo_t *info, void *context)
{
    if (info->si_code == SI_TKILL && info->si_pid == getpid() && ffm_threads_is_asked()) {
        ucontext_t *interrupted = context;
        if (joined != 0 &&
            joined != gettid()) { /* it was cloned with the variables of another thread, and stays unseen */
            ffm_threads_lose();
            ffm_threads_answer(interrupted);
            return;
        }
        ffm_thread_memory_in_handler((uint64_t)interrupted->uc_mcontext.gregs[REG_RSP]);
        ffm_dispatch_join();
        ffm_signal_stack_give_in_handler(interrupted);
        ffm_signals_withhold((uint64_t *)&interrupted->uc_sigmask);
        ffm_threads_answer(interrupted);
        return;
    }
    const uint64_t from = (uint64_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
    ffm_closed_memory_doubt();
    if (info->si_code != USER_DISPATCH || ffm_own_dispatch_wants(from)) {
        ffm_signals_pass(number, info, context);
        return;
    }
    selector = LET_THROUGH;
    ffm_keys_enter();
    const bool intercepts = intercepted(context);
    ffm_keys_leave(context);
    selector = intercepts ? INTERCEPT : LET_THROUGH;
}

/* ---- joining ----------------------------------------------------------------------------------------------------- */

static bool turn_on(void)
{
    const uint64_t arguments[6] = {FFM_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, dispatch.code,
                                   dispatch.code_bytes, (uint64_t)&selector};
    return ffm_kernel_call(SYS_prctl, arguments) == 0;
}

void ffm_dispatch_join(void)
{
    if (!dispatch.open || joined != 0)
        return;
    ffm_signals_unblock();
    if (!turn_on())
        return;
    joined = gettid();
    ffm_thread_words_here();
    ffm_keys_join();
    ffm_threads_join();
    selector = INTERCEPT;
}

/* A new thread, in its first instructions. */
void ffm_dispatch_begin(void)
{
    ffm_handovers_begins((uint64_t)__builtin_thread_pointer());
    ffm_dispatch_join();
    ffm_signal_stack_give();
}

static __thread bool unseen __attribute__((tls_model("initial-exec"))); /* what the child touches */

/* A child that runs in the memory of this thread, and as this thread: it touches what the thread has waited for. */
void ffm_dispatch_child_begins(void)
{
    unseen = !ffm_signals_child_begins() || !turn_on();
    if (!unseen)
        return;
    ffm_watch_give_up();
    ffm_watch_before_fork();
}

/* The thread continues: the child has executed another program or ended, perhaps within a system call. */
void ffm_dispatch_child_over(void)
{
    selector = LET_THROUGH;
    ffm_signals_child_over();
    if (unseen)
        ffm_watch_forked();
    unseen = false;
    ffm_calls_in_progress_child_over();
    ffm_system_call_after();
    selector = INTERCEPT;
}

void ffm_dispatch_after_fork(void)
{
    ffm_signals_after_fork();
    ffm_own_dispatch_after_fork();
    joined = 0;
    dispatch.forked = true;
    ffm_threads_after_fork();
    ffm_calls_in_progress_after_fork();
    ffm_quick_places_after_fork();
    ffm_signal_stacks_after_fork();
    ffm_dispatch_join();
}

static int find_code(struct dl_phdr_info *module, size_t bytes, void *result)
{
    (void)bytes, (void)result;
    const uint64_t here = (uint64_t)find_code;
    for (int i = 0; i < module->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &module->dlpi_phdr[i];
        const uint64_t start = module->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_LOAD && start <= here && here < start + part->p_memsz) {
            dispatch.code = start;
            dispatch.code_bytes = part->p_memsz;
            return 1;
        }
    }
    return 0;
}

bool ffm_dispatch_open(void)
{
    if (dispatch.open)
        return true;
    if (dl_iterate_phdr(find_code, NULL) != 1)
        return false;
    dispatch.open = true;
    ffm_dispatch_join();
    if (joined == 0) {
        dispatch.open = false;
        return false;
    }
    ffm_signal_stack_give();
    ffm_thread_memory_measure();
    ffm_threads_ask();
    return true;
}
