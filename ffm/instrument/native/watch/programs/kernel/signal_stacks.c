#include "signal_stacks.h"

#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "kernel.h"
#include "signals.h"

/* Handlers of the program that ask for an alternate stack run there, too, if it gave none. */
enum { BYTES = 256 << 10, LEFT = 256 };

/* A handler on it may switch to another context, whose signals must not overwrite the handler's frames: the kernel
 * forgets the stack while a handler runs there (Linux 4.7). In <linux/signal.h>, which conflicts with <signal.h>. */
static const int AUTODISARM = (int)(1U << 31);

static struct {
    bool locked;
    struct {
        uint64_t stack; /* 0 if the place is free */
        pid_t thread;   /* which has ended, or is about to */
    } left[LEFT];
} stacks;

static __thread uint64_t own __attribute__((tls_model("initial-exec"))); /* 0 until there is one */

static bool has_ended(pid_t thread)
{
    const int64_t process = ffm_kernel(SYS_getpid, 0, 0, 0, 0);
    return ffm_kernel(SYS_tgkill, (uint64_t)process, (uint64_t)thread, 0, 0) != 0;
}

/* The stack of a thread that has ended, or 0. */
static uint64_t take(void)
{
    uint64_t taken = 0;
    const uint64_t before = ffm_signals_lock(&stacks.locked);
    for (uint32_t i = 0; i < LEFT && taken == 0; i++)
        if (stacks.left[i].stack != 0 && has_ended(stacks.left[i].thread)) {
            taken = stacks.left[i].stack;
            stacks.left[i].stack = 0;
        }
    ffm_signals_unlock(&stacks.locked, before);
    return taken;
}

/* A stack of ours for the calling thread; false if there is no memory. */
static bool made(stack_t *made)
{
    if (own == 0)
        own = take();
    if (own == 0) {
        const uint64_t arguments[6] = {0, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                                       UINT64_MAX};
        const int64_t pages = ffm_kernel_call(SYS_mmap, arguments);
        if (pages < 0)
            return false;
        own = (uint64_t)pages;
    }
    void *start = (void *)own; // NOLINT(performance-no-int-to-ptr)
    *made = (stack_t){.ss_sp = start, .ss_size = BYTES, .ss_flags = AUTODISARM};
    return true;
}

void ffm_signal_stack_give(void)
{
    stack_t present = {.ss_flags = SS_DISABLE}, ours;
    ffm_kernel(SYS_sigaltstack, 0, (uint64_t)&present, 0, 0);
    if (present.ss_flags & SS_DISABLE && made(&ours))
        ffm_kernel(SYS_sigaltstack, (uint64_t)&ours, 0, 0, 0);
}

void ffm_signal_stack_give_in_handler(ucontext_t *interrupted)
{
    if (interrupted->uc_stack.ss_flags & SS_DISABLE)
        made(&interrupted->uc_stack);
}

bool ffm_signal_stack_is_ours(const ucontext_t *interrupted)
{
    return own != 0 && (uint64_t)interrupted->uc_stack.ss_sp == own;
}

int64_t ffm_signal_stack_program(const uint64_t *arguments, ucontext_t *interrupted)
{
    /* The kernel has forgotten ours for as long as this handler runs, and knows what the program gives. */
    const int64_t result = ffm_kernel_call(SYS_sigaltstack, arguments);
    stack_t given = {.ss_flags = SS_DISABLE};
    ffm_kernel(SYS_sigaltstack, 0, (uint64_t)&given, 0, 0);
    if (!(given.ss_flags & SS_DISABLE))
        interrupted->uc_stack = given;
    return result;
}

void ffm_signal_stack_release(void)
{
    if (own == 0)
        return;
    const uint64_t before = ffm_signals_lock(&stacks.locked);
    for (uint32_t i = 0; i < LEFT; i++)
        if (stacks.left[i].stack == 0) {
            stacks.left[i].stack = own;
            stacks.left[i].thread = (pid_t)ffm_kernel(SYS_gettid, 0, 0, 0, 0);
            break;
        }
    ffm_signals_unlock(&stacks.locked, before);
    own = 0;
}

void ffm_signal_stacks_after_fork(void)
{
    __atomic_clear(&stacks.locked, __ATOMIC_RELEASE); /* a thread that no longer exists may have held it */
}
