/* Guards over the C library while downloads are pending: on closed pages the kernel does not fault but returns
 * errors. */
#include "guards.h"

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "counters.h"
#include "delivery.h"
#include "guard_calls.h"
#include "kernel.h"
#include "late.h"
#include "maps.h"
#include "signal_guards.h"
#include "unwinding.h"
#include "uses.h"

static plain_function originals[GUARDS];
static const void *addresses[GUARDS];

plain_function ffm_guard_original(uint32_t guard)
{
    plain_function code;
    /* Another thread can arrive between the patch and the bind that follows it. */
    while ((code = __atomic_load_n(&originals[guard], __ATOMIC_ACQUIRE)) == NULL)
        __builtin_ia32_pause();
    return code;
}

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
    const word result = ffm_guard_original(guard)(ARGUMENTS);
    ffm_uses_end(use);
    return result;
}

/* A call of the kernel that does nothing if it meets a closed page. */
word ffm_guard_again_where_closed(uint32_t guard, PARAMETERS)
{
    const word result = ffm_guard_original(guard)(ARGUMENTS);
    if (!ffm_late_busy() || (result != (word)-1 && (int)result != -1) || errno != EFAULT)
        return result;
    deliver_all();
    return ffm_guard_original(guard)(ARGUMENTS);
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
        return ffm_guard_again_where_closed(GUARD_##name, ARGUMENTS);                                                  \
    }
#define PROCESS(name)                                                                                                  \
    static word guard_##name(PARAMETERS)                                                                               \
    {                                                                                                                  \
        if (ffm_downloads_pending())                                                                                   \
            deliver_all();                                                                                             \
        return ffm_guard_original(GUARD_##name)(ARGUMENTS);                                                            \
    }
#define SIGNAL(name)
#define OTHER(name)
#include "guarded_functions.def"

static word guard_mmap(PARAMETERS) /* (address, bytes, protection, flags, file, offset) */
{
    if (ffm_downloads_pending() && (d & (MAP_FIXED | MAP_FIXED_NOREPLACE)))
        deliver(a, b);
    word mapped = ffm_guard_original(GUARD_mmap)(ARGUMENTS);
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
     * only when they are made by their own functions. */
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
    return ((seven_argument_function)(uintptr_t)ffm_guard_original(GUARD_syscall))(a, b, c, d, e, f, g);
}

static word guard_munmap(PARAMETERS)
{
    if (ffm_downloads_pending())
        deliver(a, b);
    word result = ffm_guard_original(GUARD_munmap)(ARGUMENTS);
    ffm_maps_unmapped(a, a + b);
    return result;
}

/* (address, bytes, …): memory there is unmapped or changes its protection. */
#define CHANGING(name)                                                                                                 \
    static word guard_##name(PARAMETERS)                                                                               \
    {                                                                                                                  \
        if (ffm_downloads_pending())                                                                                   \
            deliver(a, b);                                                                                             \
        word result = ffm_guard_original(GUARD_##name)(ARGUMENTS);                                                     \
        ffm_maps_changed();                                                                                            \
        return result;                                                                                                 \
    }
CHANGING(mprotect)
CHANGING(madvise)

static word guard_mremap(PARAMETERS)
{
    if (ffm_downloads_pending())
        deliver(a, b);
    word result = ffm_guard_original(GUARD_mremap)(ARGUMENTS);
    ffm_maps_unmapped(a, a + b);
    return result;
}

void *ffm_guard_wrapper(uint32_t guard)
{
    static void *const wrappers[GUARDS] = {
#define BUFFER(name, address, bytes) [GUARD_##name] = guard_##name,
#define VECTOR(name) [GUARD_##name] = guard_##name,
#define MESSAGES(name, many) [GUARD_##name] = guard_##name,
#define STRUCTURE(name) [GUARD_##name] = guard_##name,
#define PROCESS(name) [GUARD_##name] = guard_##name,
#define SIGNAL(name) [GUARD_##name] = ffm_guard_##name,
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
