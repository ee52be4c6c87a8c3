#include "signal_stacks.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "guarded.h"
#include "kernel.h"
#include "signal_mask.h"

/* A thread's stacks are parts of one mapping, of which only what is used takes memory. A handler of ours that one of
 * the program's has interrupted keeps its part until it continues, which may be after other coroutines of the program
 * have run. One that is left by a jump never continues: when all parts are kept, the next one in turn is taken. */
enum { PART = 64 << 10, PARTS = 32, BYTES = PARTS * PART, LEFT = 256 };

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

/* At the start of the mapping: thread-local variables have little room. */
typedef struct {
    stack_t given; /* by the program to this thread; of no bytes if nothing */
    uint32_t kept; /* one bit for each part */
    uint32_t last; /* part that the kernel got */
    ffm_signals_call *calls[PARTS];
} state_of_thread;

static state_of_thread *state(void)
{
    return (state_of_thread *)own; // NOLINT(performance-no-int-to-ptr)
}

static stack_t *given(void)
{
    return &state()->given;
}

static bool is_within(uint64_t address, const stack_t *stack)
{
    return address - (uint64_t)stack->ss_sp < stack->ss_size;
}

static uint32_t next_of(uint32_t part)
{
    return (part + 1) % PARTS;
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
        *state() = (state_of_thread){.given.ss_flags = SS_DISABLE};
    uint32_t part = next_of(state()->last);
    while (state()->kept & 1U << part && state()->kept != UINT32_MAX)
        part = next_of(part);
    state()->last = part;
    state()->calls[part] = NULL;
    const uint64_t first = part == 0 ? sizeof(state_of_thread) : 0;
    void *start = (void *)(own + (uint64_t)part * PART + first); // NOLINT(performance-no-int-to-ptr)
    *made = (stack_t){.ss_sp = start, .ss_size = PART - first, .ss_flags = AUTODISARM};
    return true;
}

/* Whether an address is on ours. */
static bool is_on_ours(uint64_t address)
{
    return own != 0 && address - own < BYTES;
}

static bool is_ours(const stack_t *stack)
{
    return is_on_ours((uint64_t)stack->ss_sp);
}

static uint32_t part_of(uint64_t address)
{
    return (uint32_t)((address - own) / PART);
}

ffm_signals_call **ffm_signal_stack_calls(uint64_t stack)
{
    return is_on_ours(stack) ? &state()->calls[part_of(stack)] : NULL;
}

/* Put ours in the place of the present one, which the program still sees. */
static bool replaced(stack_t *present)
{
    const stack_t before = *present;
    if (is_ours(&before))
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

/* Make a stack the alternate one, with the stack pointer elsewhere: the kernel changes none that it finds in use. */
void ffm_signal_stack_set(const stack_t *stack, uint64_t elsewhere) __attribute__((visibility("hidden")));
__asm__(".text\n"
        ".globl ffm_signal_stack_set\n"
        ".hidden ffm_signal_stack_set\n"
        ".type ffm_signal_stack_set, @function\n"
        "ffm_signal_stack_set:\n"
        "mov %rsp, %rdx\n"
        "mov %rsi, %rsp\n"
        "xor %esi, %esi\n"
        "mov $131, %eax\n" /* sigaltstack */
        "syscall\n"
        "mov %rdx, %rsp\n"
        "ret\n"
        ".size ffm_signal_stack_set, . - ffm_signal_stack_set\n");

/* This handler may run on the program's stack. Since Linux 6.12, the end of a handler does not change the alternate
 * stack that the handler is on, except one that the kernel forgets meanwhile, as it does ours. */
void ffm_signal_stack_give_in_handler(ucontext_t *interrupted)
{
    if (!replaced(&interrupted->uc_stack))
        return;
    const uint64_t before = ffm_signals_set_mask(UINT64_MAX);
    ffm_signal_stack_set(&interrupted->uc_stack, own + BYTES);
    ffm_signals_set_mask(before);
}

bool ffm_signal_stack_known(void)
{
    return own != 0;
}

/* The kernel, which has forgotten ours for as long as this handler runs, says whether it would take a stack. */
static int64_t checked(uint64_t wanted)
{
    stack_t present = {.ss_flags = SS_DISABLE};
    const uint64_t before = ffm_signals_set_mask(UINT64_MAX);
    ffm_kernel(SYS_sigaltstack, 0, (uint64_t)&present, 0, 0);
    const int64_t result = ffm_kernel(SYS_sigaltstack, wanted, 0, 0, 0);
    ffm_kernel(SYS_sigaltstack, (uint64_t)&present, 0, 0, 0);
    ffm_signals_set_mask(before);
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

/* The part of ours that the kernel has while a handler of the program runs: the one that it had, or another one if a
 * handler of ours is interrupted on it. */
static stack_t rest_of(const ucontext_t *frame)
{
    const uint64_t interrupted = (uint64_t)frame->uc_mcontext.gregs[REG_RSP];
    stack_t rest = frame->uc_stack;
    if (own == 0 || is_ours(&rest))
        return rest;
    if (is_on_ours(interrupted)) {
        state()->kept |= 1U << part_of(interrupted);
        state()->last = part_of(interrupted); /* when all are kept, the next one has been for longest */
    }
    made(&rest);
    return rest;
}

/* Where a handler's frame of so many bytes ends; 0 if there is no room: the kernel would end the program here. */
static uint64_t top_for(const ffm_signal_entry *entry, uint64_t bytes)
{
    const uint64_t below = entry->program - RED_ZONE, low = (uint64_t)given()->ss_sp;
    if (!entry->asks || given()->ss_size == 0)
        return below;
    const uint64_t top = is_within(entry->program, given()) ? below : low + given()->ss_size;
    return top - low < bytes + ALIGNMENT ? 0 : top;
}

/* The kernel's frame shows the program's stack. One with SS_AUTODISARM is not set while its handler runs. */
static void show_given(const ffm_signal_entry *entry)
{
    if (own == 0 || !entry->told)
        return;
    entry->frame->uc_stack = *given();
    if (entry->asks && given()->ss_flags & AUTODISARM)
        *given() = (stack_t){.ss_flags = SS_DISABLE};
}

uint64_t ffm_signal_stack_moved(const ffm_signal_entry *entry, stack_t *rest)
{
    enum { RETURN = 8 };
    ucontext_t *frame = entry->frame;
    const uint64_t first = (uint64_t)frame - RETURN, bytes = end_of(frame) - first;
    const bool moves = is_on_ours(first) && !is_on_ours(entry->program);
    const uint64_t top = moves ? top_for(entry, bytes) : 0;
    const uint64_t to = top - bytes, moved = to - ((to - first) % ALIGNMENT);
    void *extended = frame->uc_mcontext.fpregs;
    const ucontext_t entered = *frame;
    show_given(entry);
    if (top == 0)
        return 0;
    if (extended != NULL)
        frame->uc_mcontext.fpregs = (void *)((uint64_t)extended + (moved - first));
    if (ffm_guarded_write(moved, (const void *)first, bytes)) {
        *rest = rest_of(&entered);
        return moved;
    }
    frame->uc_mcontext.fpregs = extended;
    return 0;
}

void ffm_signal_stack_returns(uint64_t frame, const ucontext_t *interrupted)
{
    ucontext_t shown; /* the frame begins with it */
    const uint64_t place = frame + offsetof(ucontext_t, uc_stack);
    if (own == 0 || !ffm_guarded_read(&shown, frame, offsetof(ucontext_t, uc_sigmask)))
        return;
    *given() = shown.uc_stack.ss_flags & SS_DISABLE ? (stack_t){.ss_flags = SS_DISABLE} : shown.uc_stack;
    const stack_t none = {.ss_flags = SS_DISABLE};
    const uint64_t to = (uint64_t)shown.uc_mcontext.gregs[REG_RSP];
    const bool to_ours = is_on_ours(to);
    if (to_ours)
        state()->kept &= ~(1U << part_of(to));
    ffm_guarded_write(place, to_ours ? &none : &interrupted->uc_stack, sizeof none);
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
