#include "signal_stacks.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "guarded.h"
#include "kernel.h"
#include "signals.h"

/* Handlers of the program that ask for an alternate stack run there, too, if it gave none. */
enum { BYTES = 256 << 10, LEFT = 256, ROOM_OF_GIVEN = 64 };

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

/* What the program has given to this thread; of no bytes if nothing. Thread-local variables have little room. */
static stack_t *given(void)
{
    return (stack_t *)own; // NOLINT(performance-no-int-to-ptr)
}

static uint64_t lowest(void)
{
    return own + ROOM_OF_GIVEN;
}

static bool is_within(uint64_t address, const stack_t *stack)
{
    return address - (uint64_t)stack->ss_sp < stack->ss_size;
}

/* A stack of ours for the calling thread; false if there is no memory. */
static bool made(stack_t *made)
{
    const bool has_one = own != 0;
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
    if (!has_one)
        *given() = (stack_t){.ss_flags = SS_DISABLE};
    void *start = (void *)lowest(); // NOLINT(performance-no-int-to-ptr)
    *made = (stack_t){.ss_sp = start, .ss_size = BYTES - ROOM_OF_GIVEN, .ss_flags = AUTODISARM};
    return true;
}

bool ffm_signal_stack_is_ours(const ucontext_t *interrupted)
{
    return own != 0 && (uint64_t)interrupted->uc_stack.ss_sp == lowest();
}

/* Ours in place of a present one, which stays the program's. */
static bool replaced(stack_t *present)
{
    const stack_t before = *present;
    if (own != 0 && (uint64_t)before.ss_sp == lowest())
        return false;
    if (!made(present))
        return false;
    if (!(before.ss_flags & SS_DISABLE))
        *given() = before;
    return true;
}

void ffm_signal_stack_give(void)
{
    stack_t present = {.ss_flags = SS_DISABLE};
    ffm_kernel(SYS_sigaltstack, 0, (uint64_t)&present, 0, 0);
    if (replaced(&present))
        ffm_kernel(SYS_sigaltstack, (uint64_t)&present, 0, 0, 0);
}

void ffm_signal_stack_give_in_handler(ucontext_t *interrupted)
{
    replaced(&interrupted->uc_stack);
}

bool ffm_signal_stack_known(void)
{
    return own != 0;
}

/* The kernel, which has forgotten ours for as long as this handler runs, says whether it would take a stack. */
static int64_t checked(uint64_t wanted)
{
    stack_t present = {.ss_flags = SS_DISABLE};
    ffm_kernel(SYS_sigaltstack, 0, (uint64_t)&present, 0, 0);
    const int64_t result = ffm_kernel(SYS_sigaltstack, wanted, 0, 0, 0);
    ffm_kernel(SYS_sigaltstack, (uint64_t)&present, 0, 0, 0);
    return result;
}

int64_t ffm_signal_stack_program(const uint64_t *arguments, const ucontext_t *interrupted)
{
    const uint64_t wanted = arguments[0], before = arguments[1];
    const bool runs_on = is_within((uint64_t)interrupted->uc_mcontext.gregs[REG_RSP], given());
    stack_t answer = *given(), stack = {0};
    answer.ss_flags |= runs_on && answer.ss_size != 0 ? SS_ONSTACK : 0;
    if (wanted != 0) {
        const int64_t result = checked(wanted);
        if (result != 0)
            return result;
        if (runs_on && !(given()->ss_flags & AUTODISARM))
            return -EPERM;
        if (!ffm_guarded_read(&stack, wanted, sizeof stack))
            return -EFAULT;
        *given() = stack.ss_flags & SS_DISABLE ? (stack_t){.ss_flags = SS_DISABLE} : stack;
        given()->ss_flags &= ~SS_ONSTACK;
    }
    return before == 0 || ffm_guarded_write(before, &answer, sizeof answer) ? 0 : -EFAULT;
}

enum { RED_ZONE = 128, ALIGNMENT = 64, LEGACY = 512, SOFTWARE = 464, EXTENDED = 0x46505853 }; /* <asm/sigcontext.h> */

/* The end of a signal's frame: that of the processor's state, which is the last part. */
static uint64_t end_of(const ucontext_t *frame)
{
    const uint8_t *state = (const uint8_t *)frame->uc_mcontext.fpregs;
    uint32_t words[2]; /* whether the state is extended, and its bytes */
    if (state == NULL)
        return (uint64_t)frame + sizeof(ucontext_t) + sizeof(siginfo_t);
    memcpy(words, state + SOFTWARE, sizeof words);
    return (uint64_t)state + (words[0] == EXTENDED ? words[1] : LEGACY);
}

uint64_t ffm_signal_stack_moved(const ucontext_t *frame, uint64_t program, stack_t *rest)
{
    enum { LEAST = 64 << 10, RETURN = 8 };
    const uint64_t interrupted = (uint64_t)frame->uc_mcontext.gregs[REG_RSP];
    const uint64_t first = (uint64_t)frame - RETURN, bytes = end_of(frame) - first;
    if (own == 0 || given()->ss_size == 0 || first - own >= BYTES)
        return 0;
    const uint64_t low = (uint64_t)given()->ss_sp;
    const uint64_t top = is_within(program, given()) ? program - RED_ZONE : low + given()->ss_size;
    if (top - low < bytes + ALIGNMENT)
        return 0; /* the kernel would end the program here */
    const uint64_t to = top - bytes, moved = to - ((to - first) % ALIGNMENT);
    memcpy((void *)moved, (const void *)first, bytes);  // NOLINT(performance-no-int-to-ptr)
    ucontext_t *there = (ucontext_t *)(moved + RETURN); // NOLINT(performance-no-int-to-ptr)
    if (there->uc_mcontext.fpregs != NULL)
        there->uc_mcontext.fpregs = (void *)((uint64_t)there->uc_mcontext.fpregs + (moved - first));
    made(rest);
    if (interrupted - own < BYTES) { /* a handler of ours, which continues later */
        rest->ss_size = interrupted - RED_ZONE - lowest() < BYTES ? interrupted - RED_ZONE - lowest() : 0;
        if (rest->ss_size < LEAST)
            *rest = (stack_t){.ss_flags = SS_DISABLE};
    }
    return moved;
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
