/* Guards over the C library while downloads are pending: on closed pages the kernel does not fault but returns
 * errors. */
#include "guards.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "counters.h"
#include "delivery.h"
#include "kernel.h"
#include "late.h"
#include "maps.h"
#include "unwinding.h"
#include "uses.h"

typedef uint64_t word;
typedef word (*plain_function)(word, word, word, word, word, word);

enum {
#define BUFFER(name, address, bytes) GUARD_##name,
#define VECTOR(name) GUARD_##name,
#define MESSAGES(name, many) GUARD_##name,
#define STRUCTURE(name) GUARD_##name,
#define PROCESS(name) GUARD_##name,
#define OTHER(name) GUARD_##name,
#include "guarded_functions.def"
#undef BUFFER
#undef VECTOR
#undef MESSAGES
#undef STRUCTURE
#undef PROCESS
#undef OTHER
    GUARDS
};

enum { SIGNALS = 65 };

static plain_function originals[GUARDS];
static const void *addresses[GUARDS];

static plain_function original(uint32_t guard)
{
    plain_function code;
    /* Another thread can arrive between the patch and the bind that follows it. */
    while ((code = __atomic_load_n(&originals[guard], __ATOMIC_ACQUIRE)) == NULL)
        __builtin_ia32_pause();
    return code;
}

#define PARAMETERS word a, word b, word c, word d, word e, word f
#define ARGUMENTS a, b, c, d, e, f

static void deliver(word start, word bytes)
{
    ffm_downloads_deliver(start, start + bytes, &ffm_counters->deliveries_called);
}

static void deliver_all(void)
{
    ffm_downloads_deliver_all(&ffm_counters->deliveries_called, false);
}

/* Where memory begins and ends; nothing yet if `end` is 0. */
typedef struct {
    word start, end;
} span;

static span with(span of, word start, word bytes)
{
    if (bytes == 0)
        return of;
    if (of.end == 0)
        return (span){start, start + bytes};
    return (span){start < of.start ? start : of.start, start + bytes > of.end ? start + bytes : of.end};
}

static span with_vector(span of, const struct iovec *buffers, word count)
{
    for (word i = 0; buffers != NULL && i < count; i++)
        of = with(of, (word)buffers[i].iov_base, buffers[i].iov_len);
    return of;
}

static span of_vector(word buffers, word count)
{
    return with_vector((span){0, 0}, (const struct iovec *)buffers, count);
}

/* A struct msghdr, or an array of struct mmsghdr. */
static span of_messages(word first, bool many, uint32_t count)
{
    const struct mmsghdr *several = (const struct mmsghdr *)first;
    span all = {0, 0};
    for (uint32_t i = 0; first != 0 && i < (many ? count : 1); i++) {
        const struct msghdr *one = many ? &several[i].msg_hdr : (const struct msghdr *)first;
        all = with_vector(all, one->msg_iov, one->msg_iovlen);
    }
    return all;
}

/* A call of the kernel that may last, and uses memory. */
static word call_with(uint32_t guard, span used, PARAMETERS)
{
    const uint32_t use = ffm_uses_begin(used.start, used.end);
    if (ffm_late_busy() && used.end != 0)
        deliver(used.start, used.end - used.start);
    const word result = original(guard)(ARGUMENTS);
    ffm_uses_end(use);
    return result;
}

/* A call of the kernel that does nothing if it meets a closed page. */
static word again_where_closed(uint32_t guard, PARAMETERS)
{
    const word result = original(guard)(ARGUMENTS);
    if (!ffm_late_busy() || (result != (word)-1 && (int)result != -1) || errno != EFAULT)
        return result;
    deliver_all();
    return original(guard)(ARGUMENTS);
}

#define BUFFER(name, address, bytes)                                                                                   \
    static word guard_##name(PARAMETERS)                                                                               \
    {                                                                                                                  \
        const word arguments[] = {ARGUMENTS};                                                                          \
        return call_with(GUARD_##name, with((span){0, 0}, arguments[address], arguments[bytes]), ARGUMENTS);           \
    }
#define VECTOR(name)                                                                                                   \
    static word guard_##name(PARAMETERS)                                                                               \
    {                                                                                                                  \
        return call_with(GUARD_##name, of_vector(b, c), ARGUMENTS);                                                    \
    }
#define MESSAGES(name, many)                                                                                           \
    static word guard_##name(PARAMETERS)                                                                               \
    {                                                                                                                  \
        return call_with(GUARD_##name, of_messages(b, many, (uint32_t)c), ARGUMENTS);                                  \
    }
#define STRUCTURE(name)                                                                                                \
    static word guard_##name(PARAMETERS)                                                                               \
    {                                                                                                                  \
        return again_where_closed(GUARD_##name, ARGUMENTS);                                                            \
    }
#define PROCESS(name)                                                                                                  \
    static word guard_##name(PARAMETERS)                                                                               \
    {                                                                                                                  \
        if (ffm_downloads_pending())                                                                                   \
            deliver_all();                                                                                             \
        return original(GUARD_##name)(ARGUMENTS);                                                                      \
    }
#define OTHER(name)
#include "guarded_functions.def"
#undef BUFFER
#undef VECTOR
#undef MESSAGES
#undef STRUCTURE
#undef PROCESS
#undef OTHER

static word guard_mmap(PARAMETERS) /* (address, bytes, protection, flags, file, offset) */
{
    if (ffm_downloads_pending() && (d & (MAP_FIXED | MAP_FIXED_NOREPLACE)))
        deliver(a, b);
    word mapped = original(GUARD_mmap)(ARGUMENTS);
    if (mapped != (word)MAP_FAILED && (d & MAP_STACK))
        ffm_maps_stack(mapped, mapped + b);
    ffm_maps_changed();
    return mapped;
}

/* What a system call does with memory. */
typedef enum { USES_WORDS, USES_BUFFERS, EVADES } memory_use;

static memory_use use_of(word number)
{
    switch (number) {
    case SYS_futex:
    case SYS_gettid:
    case SYS_getpid:
    case SYS_getcpu:
    case SYS_sched_yield:
    case SYS_membarrier:
    case SYS_tgkill:
        return USES_WORDS;
    /* Memory that the kernel uses after the call, processes that no fork handler sees, and calls that the guards handle
     * when they come by the functions of their own. */
    case SYS_io_uring_setup:
    case SYS_io_setup:
    case SYS_userfaultfd:
    case SYS_fork:
    case SYS_vfork:
    case SYS_clone:
    case SYS_clone3:
    case SYS_mmap:
    case SYS_munmap:
    case SYS_mremap:
    case SYS_mprotect:
    case SYS_pkey_mprotect:
    case SYS_madvise:
    case SYS_rt_sigaction:
    case SYS_rt_sigprocmask:
        return EVADES;
    default:
        return USES_BUFFERS;
    }
}

typedef word (*seven_argument_function)(word, word, word, word, word, word, word);

/* The number, and up to six arguments. */
static word guard_syscall(PARAMETERS, word g)
{
    const word arguments[] = {b, c, d, e, f, g};
    /* libunwind 1.8 blocks signals in this way around its locks; that concerns no memory of the program. */
    memory_use use = ffm_unwinding_here() ? USES_WORDS : use_of(a);
    if (use == EVADES)
        ffm_downloads_deliver_all(&ffm_counters->deliveries_called, true);
    else if (use == USES_BUFFERS && ffm_downloads_pending())
        deliver_all();
    for (int i = 0; i < 6 && ffm_downloads_pending(); i++)
        deliver(arguments[i], 1);
    return ((seven_argument_function)(uintptr_t)original(GUARD_syscall))(a, b, c, d, e, f, g);
}

static word guard_munmap(PARAMETERS)
{
    if (ffm_downloads_pending())
        deliver(a, b);
    word result = original(GUARD_munmap)(ARGUMENTS);
    ffm_maps_unmapped(a, a + b);
    return result;
}

/* (address, bytes, …): memory there is unmapped or changes its protection. */
#define CHANGING(name)                                                                                                 \
    static word guard_##name(PARAMETERS)                                                                               \
    {                                                                                                                  \
        if (ffm_downloads_pending())                                                                                   \
            deliver(a, b);                                                                                             \
        word result = original(GUARD_##name)(ARGUMENTS);                                                               \
        ffm_maps_changed();                                                                                            \
        return result;                                                                                                 \
    }
CHANGING(mprotect)
CHANGING(madvise)

static word guard_mremap(PARAMETERS)
{
    if (ffm_downloads_pending())
        deliver(a, b);
    word result = original(GUARD_mremap)(ARGUMENTS);
    ffm_maps_unmapped(a, a + b);
    return result;
}

/* The program has its own handler for faults: nothing may be pending any more. */
static void hand_over(int number)
{
    if (number == SIGSEGV)
        ffm_downloads_deliver_all(&ffm_counters->deliveries_called, true);
}

/* A fault while its signal is blocked would end the program. So it never is; the program is told what it asked for. */
static const sigset_t *with_faults(word given, sigset_t *room)
{
    const sigset_t *set = (const sigset_t *)given;
    if (set == NULL || sigismember(set, SIGSEGV) != 1)
        return set;
    *room = *set;
    sigdelset(room, SIGSEGV);
    return room;
}

static void (*hidden)(int, siginfo_t *, void *);

void ffm_guards_hide(void (*handler)(int, siginfo_t *, void *))
{
    __atomic_store_n(&hidden, handler, __ATOMIC_RELEASE);
}

static bool is_hidden(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) && action->sa_sigaction == __atomic_load_n(&hidden, __ATOMIC_ACQUIRE);
}

/* Whether the program's handlers of signals were to block faults. */
static bool handlers_block[SIGNALS];

static word guard_sigaction(PARAMETERS)
{
    const uint32_t number = (uint32_t)a;
    const bool known = number < SIGNALS;
    const bool blocked = known && __atomic_load_n(&handlers_block[number], __ATOMIC_RELAXED);
    struct sigaction without, before;
    if (b != 0) {
        hand_over((int)a);
        without = *(const struct sigaction *)b;
        sigdelset(&without.sa_mask, SIGSEGV);
    }
    const word result = original(GUARD_sigaction)(a, b != 0 ? (word)&without : 0, (word)&before, d, e, f);
    if ((int)result != 0)
        return result;
    if (b != 0 && known)
        __atomic_store_n(&handlers_block[number], sigismember(&((const struct sigaction *)b)->sa_mask, SIGSEGV) == 1,
                         __ATOMIC_RELAXED);
    if (is_hidden(&before))
        before = (struct sigaction){.sa_handler = SIG_DFL};
    if (blocked)
        sigaddset(&before.sa_mask, SIGSEGV);
    if (c != 0)
        *(struct sigaction *)c = before;
    return result;
}

static word guard_signal(PARAMETERS)
{
    hand_over((int)a);
    struct sigaction before;
    const bool ours = ffm_unguarded_sigaction((int)a, NULL, &before) == 0 && is_hidden(&before);
    const word result = original(GUARD_signal)(ARGUMENTS);
    return ours && (void (*)(int))result != SIG_ERR ? (word)SIG_DFL : result;
}

/* Whether this thread believes that faults are blocked. */
static __thread bool believes_blocked __attribute__((tls_model("initial-exec")));

/* sigprocmask calls this function. */
static word guard_pthread_sigmask(PARAMETERS)
{
    const bool before = believes_blocked, named = b != 0 && sigismember((const sigset_t *)b, SIGSEGV) == 1;
    const bool blocks = named && ((int)a == SIG_BLOCK || (int)a == SIG_SETMASK);
    const bool unblocks = b != 0 && ((int)a == SIG_UNBLOCK ? named : (int)a == SIG_SETMASK && !named);
    sigset_t room;
    const sigset_t *given = blocks ? with_faults(b, &room) : (const sigset_t *)b;
    const word result = original(GUARD_pthread_sigmask)(a, (word)given, c, d, e, f);
    if ((int)result != 0)
        return result;
    believes_blocked = blocks || (before && !unblocks);
    if (before && c != 0)
        sigaddset((sigset_t *)c, SIGSEGV);
    return result;
}

/* Calls during which the thread has another mask, and the thread's mask from its begin on. */
static word guard_sigsuspend(PARAMETERS)
{
    sigset_t room;
    return original(GUARD_sigsuspend)((word)with_faults(a, &room), b, c, d, e, f);
}

static word guard_ppoll(PARAMETERS)
{
    sigset_t room;
    const word mask = (word)with_faults(d, &room);
    return again_where_closed(GUARD_ppoll, a, b, c, mask, e, f);
}

static word guard_pselect(PARAMETERS)
{
    sigset_t room;
    return again_where_closed(GUARD_pselect, a, b, c, d, e, (word)with_faults(f, &room));
}

static word guard_epoll_pwait(PARAMETERS)
{
    sigset_t room;
    return again_where_closed(GUARD_epoll_pwait, a, b, c, d, (word)with_faults(e, &room), f);
}

static word guard_epoll_pwait2(PARAMETERS)
{
    sigset_t room;
    return again_where_closed(GUARD_epoll_pwait2, a, b, c, d, (word)with_faults(e, &room), f);
}

static word guard_pthread_attr_setsigmask_np(PARAMETERS)
{
    sigset_t room;
    return original(GUARD_pthread_attr_setsigmask_np)(a, (word)with_faults(b, &room), c, d, e, f);
}

int ffm_unguarded_sigaction(int number, const struct sigaction *action, struct sigaction *previous)
{
    return (int)original(GUARD_sigaction)((word)number, (word)action, (word)previous, 0, 0, 0);
}

void *ffm_guard_wrapper(uint32_t guard)
{
    static void *const wrappers[GUARDS] = {
#define BUFFER(name, address, bytes) [GUARD_##name] = guard_##name,
#define VECTOR(name) [GUARD_##name] = guard_##name,
#define MESSAGES(name, many) [GUARD_##name] = guard_##name,
#define STRUCTURE(name) [GUARD_##name] = guard_##name,
#define PROCESS(name) [GUARD_##name] = guard_##name,
#define OTHER(name) [GUARD_##name] = guard_##name,
#include "guarded_functions.def"
    };
    return guard < GUARDS ? wrappers[guard] : NULL;
}

void ffm_guard_bind(uint32_t guard, const void *address, void *code)
{
    if (guard >= GUARDS)
        return;
    __atomic_store_n(&addresses[guard], address, __ATOMIC_RELEASE);
    __atomic_store_n(&originals[guard], (plain_function)code, __ATOMIC_RELEASE);
}

bool ffm_guard_is_bound(const void *address)
{
    for (uint32_t i = 0; i < GUARDS; i++)
        if (__atomic_load_n(&addresses[i], __ATOMIC_ACQUIRE) == address)
            return true;
    return false;
}

/* The guards without which ordinary programs could notice deferred downloads. */
bool ffm_guards_complete(void)
{
    static const uint32_t essential[] = {GUARD_read,   GUARD_write,   GUARD_mmap,      GUARD_munmap,
                                         GUARD_writev, GUARD_madvise, GUARD_sigaction, GUARD_pthread_sigmask};
    for (uint32_t i = 0; i < sizeof essential / sizeof *essential; i++)
        if (__atomic_load_n(&originals[essential[i]], __ATOMIC_ACQUIRE) == NULL)
            return false;
    return true;
}
