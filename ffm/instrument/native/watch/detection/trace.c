#include "trace.h"

#include <limits.h>
#include <linux/futex.h>
#include <malloc.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "accesses.h"
#include "clock.h"
#include "clock_reads.h"
#include "foreign.h"
#include "handovers.h"
#include "instruments.h"
#include "invocation.h"
#include "kernel.h"
#include "ranges.h"
#include "stacks.h"
#include "system_calls.h"
#include "thread.h"
#include "thread_memory.h"
#include "threads.h"
#include "trace_calls.h"
#include "trace_cancelled.h"
#include "trace_code.h"
#include "trace_marks.h"
#include "trace_operand.h"
#include "traced.h"
#include "watched.h"

enum { PAGE = 4096, SET_MDWE = 65 /* PR_SET_MDWE of linux/prctl.h (Linux 6.3) */ };

/* A thread's translation must lie within 2 GiB of what Stalker knows about it, and Stalker crashes if there is no room
 * (frida/frida-gum#793). So addresses are reserved before the driver takes what is next to the libraries, and each
 * thread that is followed gives back as much as its translation takes: in pieces between which a page stays, so that
 * the stacks of hundreds of other threads, of 8 MiB each with a guard, do not fill them. glibc's arenas, of 64 MiB
 * each, would do so, too. */
enum { MOST_FOLLOWED = 96, ROOM = 40 << 20, PIECE = 8 << 20, ARENAS = 2 };

typedef int (*create_function)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

static struct {
    void (*follow)(void);
    void (*unfollow)(void);
    void (*forbidden)(uint64_t instruction);
    pid_t process; /* the process that contains the agent */
    pthread_key_t ending;
    uint32_t followed;               /* threads */
    uint64_t reserved, reserved_end; /* addresses */
    create_function create;
} trace;

static __thread bool followed __attribute__((tls_model("initial-exec")));

static void reserve(void)
{
    const uint64_t bytes = (uint64_t)MOST_FOLLOWED * ROOM;
    void *start = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED) /* a limit; there may be room all the same */
        return;
    trace.reserved = (uint64_t)start;
    trace.reserved_end = trace.reserved + bytes;
}

static void make_room(void)
{
    const uint64_t end = __atomic_load_n(&trace.reserved_end, __ATOMIC_RELAXED);
    if (end - trace.reserved < ROOM)
        return;
    const uint64_t last = __atomic_fetch_sub(&trace.reserved_end, ROOM, __ATOMIC_RELAXED);
    if (last <= trace.reserved)
        return;
    for (uint64_t piece = last - ROOM; piece < last; piece += PIECE)
        munmap((void *)(piece + PAGE), PIECE - PAGE);
}

/* Frida makes system calls at which a thread can be cancelled, with locks of its own. */
static void uncancelled(void (*function)(void))
{
    int state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    function();
    pthread_setcancelstate(state, &state);
}

static void follow(void)
{
    make_room();
    ffm_trace_code_begins();
    uncancelled(trace.follow);
}

/* Give back the translation of a thread that ends, after the destructors of all its other variables, which may use the
 * program's results. Those run in the rounds before the last. */
static __thread bool counted __attribute__((tls_model("initial-exec"))); /* among the program's threads */

static void at_thread_exit(void *opaque)
{
    const uintptr_t round = (uintptr_t)opaque;
    if (round < PTHREAD_DESTRUCTOR_ITERATIONS && pthread_setspecific(trace.ending, (void *)(round + 1)) == 0)
        return;
    __atomic_sub_fetch(&trace.followed, 1, __ATOMIC_RELAXED);
    if (counted)
        ffm_threads_end();
    uncancelled(trace.unfollow);
}

void ffm_trace_follow(void)
{
    if (trace.follow == NULL || followed)
        return;
    followed = true;
    ffm_thread_memory_here(); /* counts as used, as with the page watch, which cannot protect it */
    if (__atomic_add_fetch(&trace.followed, 1, __ATOMIC_RELAXED) > MOST_FOLLOWED) {
        __atomic_sub_fetch(&trace.followed, 1, __ATOMIC_RELAXED);
        ffm_trace_lose();
        ffm_watch_give_up();
        return;
    }
    pthread_setspecific(trace.ending, (void *)1);
    follow();
}

/* Stalker lets a child of clone run its original code. */
void ffm_trace_after_fork(void)
{
    ffm_trace_code_after_fork();
    followed = trace.process != getpid();
    trace.followed = followed; /* the child has one thread */
    ffm_trace_follow();
}

bool ffm_collector_trace_skips(uint64_t instruction)
{
    return ffm_instruments_hold(instruction);
}

/* ---- accesses ---------------------------------------------------------------------------------------------------- */

static uint64_t register_of(const gum_cpu_context *registers, uint8_t number)
{
    return number == FFM_NO_REGISTER ? 0 : (&registers->rax)[-(int)number];
}

/* [*start, *end) of an operand; empty for a string instruction that does nothing. */
static void reach_of(const gum_cpu_context *registers, const ffm_operand *operand, uint64_t *start, uint64_t *end)
{
    uint64_t address = register_of(registers, operand->base) + register_of(registers, operand->index) * operand->scale +
                       (uint64_t)operand->displacement;
    if (operand->flags & FFM_OPERAND_NARROW)
        address &= UINT32_MAX;
    if (operand->flags & FFM_OPERAND_FS)
        address += (uint64_t)__builtin_thread_pointer();
    const uint64_t bytes = operand->bytes * (operand->flags & FFM_OPERAND_REPEATED ? registers->rcx : 1);
    *start = operand->flags & FFM_OPERAND_DOWN && bytes != 0 ? address + operand->bytes - bytes : address;
    *end = *start + bytes;
}

static bool watched(uint64_t start, uint64_t end, bool writing)
{
    ffm_ranges_lock();
    bool found = ffm_access_forbidden(start, end, writing);
    ffm_ranges_unlock();
    return found;
}

/* Whether this thread is doing the collector's own work, including the libraries that it calls. */
static bool in_collector(const ffm_thread *thread)
{
    return ffm_ranges_held() || (thread != NULL && thread->bypass != 0);
}

static uint32_t stack_of(const gum_cpu_context *cpu)
{
    const ffm_registers registers = ffm_registers_of(cpu);
    bool truncated;
    return ffm_stack_from(&registers, &truncated);
}

void ffm_collector_trace_access(const void *opaque_registers, const void *opaque_operand)
{
    const gum_cpu_context *registers = opaque_registers;
    const ffm_operand *operand = opaque_operand;
    const ffm_thread *thread = ffm_thread_peek();
    bool writing = (operand->flags & FFM_OPERAND_WRITE) != 0;
    uint64_t start, end;
    reach_of(registers, operand, &start, &end);
    if (start >= end || !ffm_watch_active() || in_collector(thread) || !watched(start, end, writing))
        return;
    uint64_t time = ffm_now();
    ffm_ranges_lock();
    bool first = ffm_access_first(start, end, writing);
    ffm_ranges_unlock();
    uint32_t stack = first && (thread == NULL || ffm_watch_wants_stacks()) ? stack_of(registers) : 0;
    /* What the driver does outside a call is ordered by its streams, not by any wait of the program. */
    if ((thread == NULL || thread->depth == 0) && ffm_foreign_driver_in(stack))
        return;
    ffm_ranges_lock();
    ffm_access_seen(start, end, writing, time, stack);
    ffm_ranges_unlock();
}

void ffm_collector_trace_system_call(const void *opaque_registers, const void *nothing)
{
    const gum_cpu_context *registers = opaque_registers;
    (void)nothing;
    const ffm_thread *thread = ffm_thread_peek();
    const uint64_t arguments[6] = {registers->rdi, registers->rsi, registers->rdx,
                                   registers->r10, registers->r8,  registers->r9};
    if (registers->rax == SYS_prctl && arguments[0] == SET_MDWE && trace.forbidden != NULL)
        trace.forbidden(registers->rip);
    ffm_trace_code_before(registers->rax, arguments);
    ffm_trace_cancelled_before(registers->rip, registers->rsp, registers->rax, arguments);
    if (in_collector(thread) || (thread != NULL && thread->depth != 0))
        return; /* what the driver makes the kernel do is known from the call's arguments */
    const ffm_registers from = ffm_registers_of(registers);
    ffm_system_call_before(registers->rax, arguments, &from);
}

/* The kernel's functions for clocks, which are hooked themselves, and which the collector calls. */
static bool in_kernel_code(uint64_t instruction)
{
    enum { MOST = 4 * PAGE };
    return instruction - getauxval(AT_SYSINFO_EHDR) < MOST;
}

void ffm_collector_trace_counter(const void *opaque_registers, const void *nothing)
{
    (void)nothing;
    if (in_collector(ffm_thread_peek()) || in_kernel_code(((const gum_cpu_context *)opaque_registers)->rip))
        return;
    const ffm_registers from = ffm_registers_of(opaque_registers);
    ffm_clock_counter_read(&from);
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

typedef struct {
    void *(*run)(void *);
    void *argument;
    bool own;       /* it is the program's */
    uint32_t begun; /* a futex: the thread has left the code that makes it */
} start;

static void say_begun(start *given)
{
    __atomic_store_n(&given->begun, 1, __ATOMIC_RELEASE);
    ffm_kernel(SYS_futex, (uint64_t)&given->begun, FUTEX_WAKE_PRIVATE, 1, 0);
}

/* Where a new thread or process goes on, Stalker keeps in one place for each thread that makes one. If that thread
 * forked before the new one has looked there, the new one would go on where the fork does. */
static void await_begun(const start *given)
{
    while (__atomic_load_n(&given->begun, __ATOMIC_ACQUIRE) == 0)
        ffm_kernel(SYS_futex, (uint64_t)&given->begun, FUTEX_WAIT_PRIVATE, 0, 0);
}

/* We jump to the thread's own function (the compiler does this at -O2): a frame of ours below it would make the stacks
 * of this run differ from those of other runs. */
static void *begin(void *opaque)
{
    const start given = *(start *)opaque;
    if (given.own)
        ffm_handovers_begins((uint64_t)opaque);
    say_begun(opaque);
    if (given.own) {
        counted = true;
        ffm_trace_follow();
    }
    return given.run(given.argument);
}

static int create(pthread_t *created, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
{
    while (__atomic_load_n(&trace.create, __ATOMIC_ACQUIRE) == NULL)
        __builtin_ia32_pause();
    bool truncated;
    /* In a forked child, the threads that Frida creates to enter it are not ours either. */
    if (trace.process != getpid() || ffm_instruments_hold((uint64_t)__builtin_return_address(0)))
        return trace.create(created, attributes, run, argument);
    const bool own = !(ffm_foreign_knows_driver() && ffm_foreign_driver_in(ffm_stack_here(1, &truncated)));
    /* Not malloc: the program may have replaced it. */
    start *given = mmap(NULL, sizeof *given, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (given == MAP_FAILED)
        return trace.create(created, attributes, run, argument);
    *given = (start){.run = run, .argument = argument, .own = own};
    if (own) {
        ffm_handovers_starts((uint64_t)given);
        ffm_threads_begin();
    }
    int status = trace.create(created, attributes, begin, given);
    if (status == 0)
        await_begun(given);
    else if (own)
        ffm_threads_end();
    munmap(given, sizeof *given);
    if (own)
        ffm_trace_follow(); /* it may use what another thread downloads, and never call the driver itself */
    return status;
}

static bool is_followed(void)
{
    return followed && trace.process == getpid();
}

static void follow_again(void)
{
    uncancelled(trace.unfollow);
    follow();
}

static void translate_again(void)
{
    if (is_followed())
        follow_again();
}

static const ffm_follower follower = {is_followed, follow_again};

/* Stalker leaves a thread that ends, before the destructors of its variables and keys run, and in the first thread the
 * functions of atexit. All of that comes after this function of the C library. */
static void (*destroy_variables)(void);

static void follow_to_end(void)
{
    while (__atomic_load_n(&destroy_variables, __ATOMIC_ACQUIRE) == NULL)
        __builtin_ia32_pause();
    if (followed && trace.process == getpid() && ffm_trace_complete())
        follow();
    destroy_variables();
}

void *ffm_collector_trace_end(void)
{
    return destroy_variables == NULL ? (void *)(uintptr_t)follow_to_end : NULL;
}

void ffm_collector_trace_bind_end(void *original)
{
    __atomic_store_n(&destroy_variables, (void (*)(void))(uintptr_t)original, __ATOMIC_RELEASE);
}

void *ffm_collector_trace_create(void)
{
    return trace.create == NULL ? (void *)(uintptr_t)create : NULL;
}

void ffm_collector_trace_open(void *follow, void *unfollow, void *original)
{
    if (trace.unfollow == NULL) {
        pthread_key_create(&trace.ending, at_thread_exit);
        mallopt(M_ARENA_MAX, ARENAS);
        reserve();
    }
    trace.process = getpid();
    trace.unfollow = (void (*)(void))(uintptr_t)unfollow;
    trace.follow = (void (*)(void))(uintptr_t)follow;
    ffm_trace_marks_open();
    ffm_trace_cancelled_open(&follower);
    ffm_trace_code_open(translate_again);
    ffm_trace_turn_on();
    if (original != NULL)
        __atomic_store_n(&trace.create, (create_function)(uintptr_t)original, __ATOMIC_RELEASE);
}

void ffm_collector_trace_when_forbidden(void *end)
{
    trace.forbidden = (void (*)(uint64_t))(uintptr_t)end;
}
