#include "library_calls.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>

#include "clock.h"
#include "kernel.h"
#include "signals.h"
#include "watch.h"

typedef uint64_t word;
typedef word (*function)(word, word, word, word, word, word, word);

enum { GREATEST = 64 }; /* vectors of a call that are looked at; the kernel takes 1024, programs a few */

/* ---- what a call touches ----------------------------------------------------------------------------------------- */

static void reads(word start, word bytes)
{
    ffm_watch_system_call(start, bytes, false);
}

static void writes(word start, word bytes)
{
    ffm_watch_system_call(start, bytes, true);
}

static void vectors(word start, word count, bool writing)
{
    const struct iovec *vector = (const struct iovec *)start;
    reads(start, count * sizeof *vector);
    for (word i = 0; vector != NULL && i < count && i < GREATEST; i++)
        ffm_watch_system_call((word)vector[i].iov_base, vector[i].iov_len, writing);
}

static void message(const struct msghdr *header, bool writing)
{
    if (header == NULL)
        return;
    ffm_watch_system_call((word)header->msg_name, header->msg_namelen, writing);
    ffm_watch_system_call((word)header->msg_control, header->msg_controllen, writing);
    vectors((word)header->msg_iov, header->msg_iovlen, writing);
}

static void messages(word start, word count, bool writing)
{
    const struct mmsghdr *headers = (const struct mmsghdr *)start;
    for (word i = 0; headers != NULL && i < count && i < GREATEST; i++)
        message(&headers[i].msg_hdr, writing);
}

static void gone(word start, word bytes)
{
    ffm_watch_released(start, bytes);
}

static void mapped(const word *a)
{
    if (a[3] & MAP_FIXED)
        gone(a[0], a[1]);
}

static void remapped(const word *a)
{
    gone(a[0], a[1]);
    if (a[3] & MREMAP_FIXED)
        gone(a[4], a[2]);
}

static void advised(const word *a)
{
    if (a[2] == MADV_DONTNEED || a[2] == MADV_FREE || a[2] == MADV_REMOVE)
        gone(a[0], a[1]);
}

/* The same by number, for programs that call the kernel through syscall(). */
static void by_number(const word *a)
{
    const word *b = a + 1;
    switch (a[0]) {
    case SYS_read:
    case SYS_pread64:
    case SYS_recvfrom:
        writes(b[1], b[2]);
        break;
    case SYS_write:
    case SYS_pwrite64:
    case SYS_sendto:
        reads(b[1], b[2]);
        break;
    case SYS_readv:
    case SYS_preadv:
    case SYS_preadv2:
        vectors(b[1], b[2], true);
        break;
    case SYS_writev:
    case SYS_pwritev:
    case SYS_pwritev2:
    case SYS_vmsplice:
        vectors(b[1], b[2], false);
        break;
    case SYS_sendmsg:
        message((const struct msghdr *)b[1], false);
        break;
    case SYS_recvmsg:
        message((const struct msghdr *)b[1], true);
        break;
    case SYS_getrandom:
        writes(b[0], b[1]);
        break;
    case SYS_process_vm_readv:
        vectors(b[1], b[2], true);
        break;
    case SYS_process_vm_writev:
        vectors(b[1], b[2], false);
        break;
    case SYS_munmap:
        gone(b[0], b[1]);
        break;
    case SYS_mmap:
        mapped(b);
        break;
    case SYS_mremap:
        remapped(b);
        break;
    case SYS_madvise:
        advised(b);
        break;
    default:
        break;
    }
}

/* ---- the functions ----------------------------------------------------------------------------------------------- */

/* X(name, what it touches), with its arguments in the words a[]. */
#define TOUCHING_CALLS(X)                                                                                              \
    X(read, writes(a[1], a[2]))                                                                                        \
    X(write, reads(a[1], a[2]))                                                                                        \
    X(pread64, writes(a[1], a[2]))                                                                                     \
    X(pwrite64, reads(a[1], a[2]))                                                                                     \
    X(readv, vectors(a[1], a[2], true))                                                                                \
    X(writev, vectors(a[1], a[2], false))                                                                              \
    X(preadv64, vectors(a[1], a[2], true))                                                                             \
    X(pwritev64, vectors(a[1], a[2], false))                                                                           \
    X(preadv64v2, vectors(a[1], a[2], true))                                                                           \
    X(pwritev64v2, vectors(a[1], a[2], false))                                                                         \
    X(send, reads(a[1], a[2]))                                                                                         \
    X(recv, writes(a[1], a[2]))                                                                                        \
    X(sendto, reads(a[1], a[2]))                                                                                       \
    X(recvfrom, writes(a[1], a[2]))                                                                                    \
    X(sendmsg, message((const struct msghdr *)a[1], false))                                                            \
    X(recvmsg, message((const struct msghdr *)a[1], true))                                                             \
    X(sendmmsg, messages(a[1], a[2], false))                                                                           \
    X(recvmmsg, messages(a[1], a[2], true))                                                                            \
    X(getrandom, writes(a[0], a[1]))                                                                                   \
    X(getentropy, writes(a[0], a[1]))                                                                                  \
    X(vmsplice, vectors(a[1], a[2], false))                                                                            \
    X(process_vm_readv, vectors(a[1], a[2], true))                                                                     \
    X(process_vm_writev, vectors(a[1], a[2], false))                                                                   \
    X(syscall, by_number(a))

/* X(name, what is called instead), with the function at `original`. */
#define REPLACED_CALLS(X)                                                                                              \
    X(sigaction, ffm_signals_sigaction((int)a[0], (const struct sigaction *)a[1], (struct sigaction *)a[2], original)) \
    X(sigprocmask, ffm_signals_sigmask((int)a[0], (const sigset_t *)a[1], (sigset_t *)a[2], original))                 \
    X(pthread_sigmask, ffm_signals_sigmask((int)a[0], (const sigset_t *)a[1], (sigset_t *)a[2], original))

/* X(name): calls that read a clock. */
#define CLOCK_CALLS(X)                                                                                                 \
    X(clock_gettime)                                                                                                   \
    X(clock)                                                                                                           \
    X(times)                                                                                                           \
    X(timespec_get)

#define TOUCHING_PLACE(name, touch) PLACE_##name,
#define CLOCK_PLACE(name) PLACE_##name,
enum {
    TOUCHING_CALLS(TOUCHING_PLACE) REPLACED_CALLS(TOUCHING_PLACE) CLOCK_CALLS(CLOCK_PLACE) PLACE_gettimeofday,
    PLACES
};

static void *originals[PLACES];

static function original_at(uint32_t place)
{
    void *original;
    /* Another thread can be here between the patch and the bind that follows it. */
    while ((original = __atomic_load_n(&originals[place], __ATOMIC_ACQUIRE)) == NULL)
        __builtin_ia32_pause();
    return (function)(uintptr_t)original;
}

#define PASS(place) original_at(place)(a[0], a[1], a[2], a[3], a[4], a[5], a[6])
#define ARGUMENTS word p, word q, word r, word s, word t, word u, word v
#define WORDS const word a[7] = {p, q, r, s, t, u, v}

#define TOUCHING_WRAPPER(name, touch)                                                                                  \
    static word wrap_##name(ARGUMENTS)                                                                                 \
    {                                                                                                                  \
        WORDS;                                                                                                         \
        if (__builtin_expect(ffm_watch_active(), 0)) {                                                                 \
            touch;                                                                                                     \
        }                                                                                                              \
        word result = PASS(PLACE_##name);                                                                              \
        ffm_watch_system_call_over();                                                                                  \
        return result;                                                                                                 \
    }
#define REPLACED_WRAPPER(name, call)                                                                                   \
    static word wrap_##name(ARGUMENTS)                                                                                 \
    {                                                                                                                  \
        WORDS;                                                                                                         \
        void *original = (void *)(uintptr_t)original_at(PLACE_##name);                                                 \
        return (word)(int64_t)(call);                                                                                  \
    }
#define CLOCK_WRAPPER(name)                                                                                            \
    static word wrap_##name(ARGUMENTS)                                                                                 \
    {                                                                                                                  \
        WORDS;                                                                                                         \
        ffm_watch_clock(__builtin_return_address(0));                                                                  \
        return PASS(PLACE_##name);                                                                                     \
    }

/* A function of the kernel's, which the C library only names: overwritten, so without an original. */
static word wrap_gettimeofday(ARGUMENTS)
{
    WORDS;
    ffm_watch_clock(__builtin_return_address(0));
    return (word)ffm_kernel(SYS_gettimeofday, a[0], a[1], 0, 0);
}

TOUCHING_CALLS(TOUCHING_WRAPPER)
REPLACED_CALLS(REPLACED_WRAPPER)
CLOCK_CALLS(CLOCK_WRAPPER)

#define TOUCHING_ROW(name, touch) {#name, (void *)(uintptr_t)wrap_##name},
#define CLOCK_ROW(name) {#name, (void *)(uintptr_t)wrap_##name},

static const struct {
    const char *name;
    void *wrapper;
} calls[PLACES] = {TOUCHING_CALLS(TOUCHING_ROW) REPLACED_CALLS(TOUCHING_ROW) CLOCK_CALLS(CLOCK_ROW)
                       CLOCK_ROW(gettimeofday)};

const char *ffm_library_call_name(uint32_t place)
{
    return place < PLACES ? calls[place].name : NULL;
}

void *ffm_library_call_wrapper(uint32_t place)
{
    return place < PLACES ? calls[place].wrapper : NULL;
}

/* The kernel's page of functions in each process, whose protection changes as a whole or not at all. */
static bool find_vdso(uint64_t *start, uint64_t *end)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[512];
    bool found = false;
    while (maps != NULL && !found && fgets(line, sizeof line, maps) != NULL)
        found = strstr(line, "[vdso]") != NULL && sscanf(line, "%" SCNx64 "-%" SCNx64, start, end) == 2;
    if (maps != NULL)
        fclose(maps);
    return found;
}

/* `jmp [rip]` and the address behind it. */
static void overwrite(uint64_t place, void *wrapper)
{
    uint8_t code[14] = {0xff, 0x25};
    memcpy(code + 6, &wrapper, sizeof wrapper);
    uint64_t start, end;
    if (!find_vdso(&start, &end) || place < start || place + sizeof code > end ||
        mprotect((void *)start, end - start, PROT_READ | PROT_WRITE | PROT_EXEC) != 0)
        return;
    memcpy((void *)place, code, sizeof code);
    mprotect((void *)start, end - start, PROT_READ | PROT_EXEC);
}

void ffm_library_call_bind(uint32_t place, void *original)
{
    if (place == PLACE_gettimeofday) {
        overwrite((uint64_t)(uintptr_t)gettimeofday, calls[place].wrapper);
        original = calls[place].wrapper;
    }
    if (place < PLACES)
        __atomic_store_n(&originals[place], original, __ATOMIC_RELEASE);
    if (place == PLACE_clock_gettime)
        __atomic_store_n(&ffm_clock, (int (*)(clockid_t, struct timespec *))(uintptr_t)original, __ATOMIC_RELEASE);
}

bool ffm_library_call_is_bound(uint32_t place)
{
    return place < PLACES && __atomic_load_n(&originals[place], __ATOMIC_ACQUIRE) != NULL;
}
