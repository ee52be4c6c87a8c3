#include "system_calls.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "watch.h"

typedef uint64_t word;
typedef word (*function)(word, word, word, word, word, word);

static void vectors(const struct iovec *vector, word count, bool writing)
{
    for (word i = 0; vector != NULL && i < count; i++)
        ffm_watch_system_call((word)vector[i].iov_base, vector[i].iov_len, writing);
}

static void message(const struct msghdr *header, bool writing)
{
    if (header != NULL)
        vectors(header->msg_iov, header->msg_iovlen, writing);
}

/* X(name, what it touches), with its arguments in the words a[]. */
#define SYSTEM_CALLS(X)                                                                                                \
    X(write, ffm_watch_system_call(a[1], a[2], false))                                                                 \
    X(pread64, ffm_watch_system_call(a[1], a[2], true))                                                                \
    X(pwrite64, ffm_watch_system_call(a[1], a[2], false))                                                              \
    X(send, ffm_watch_system_call(a[1], a[2], false))                                                                  \
    X(recv, ffm_watch_system_call(a[1], a[2], true))                                                                   \
    X(sendto, ffm_watch_system_call(a[1], a[2], false))                                                                \
    X(recvfrom, ffm_watch_system_call(a[1], a[2], true))                                                               \
    X(readv, vectors((const struct iovec *)a[1], a[2], true))                                                          \
    X(writev, vectors((const struct iovec *)a[1], a[2], false))                                                        \
    X(preadv64, vectors((const struct iovec *)a[1], a[2], true))                                                       \
    X(pwritev64, vectors((const struct iovec *)a[1], a[2], false))                                                     \
    X(sendmsg, message((const struct msghdr *)a[1], false))                                                            \
    X(recvmsg, message((const struct msghdr *)a[1], true))

#define PLACE(name, touch) PLACE_##name,
enum { SYSTEM_CALLS(PLACE) PLACES };

static void *originals[PLACES];

void *ffm_system_call_original(uint32_t place)
{
    return place < PLACES ? __atomic_load_n(&originals[place], __ATOMIC_ACQUIRE) : NULL;
}

static function original_of(uint32_t place)
{
    void *original;
    /* Another thread can be here between the patch and the bind that follows it. */
    while ((original = ffm_system_call_original(place)) == NULL)
        __builtin_ia32_pause();
    return (function)(uintptr_t)original;
}

#define WRAPPER(name, touch)                                                                                           \
    static word wrap_##name(word p, word q, word r, word s, word t, word u)                                            \
    {                                                                                                                  \
        const word a[6] = {p, q, r, s, t, u};                                                                          \
        if (__builtin_expect(ffm_watch_active(), 0)) {                                                                 \
            touch;                                                                                                     \
        }                                                                                                              \
        return original_of(PLACE_##name)(p, q, r, s, t, u);                                                            \
    }
SYSTEM_CALLS(WRAPPER)

#define ROW(name, touch) {#name, (void *)(uintptr_t)wrap_##name},
static const struct {
    const char *name;
    void *wrapper;
} calls[PLACES] = {SYSTEM_CALLS(ROW)};

const char *ffm_system_call_name(uint32_t place)
{
    return place < PLACES ? calls[place].name : NULL;
}

void *ffm_system_call_wrapper(uint32_t place)
{
    return place < PLACES ? calls[place].wrapper : NULL;
}

void ffm_system_call_bind(uint32_t place, void *original)
{
    if (place < PLACES)
        __atomic_store_n(&originals[place], original, __ATOMIC_RELEASE);
}
