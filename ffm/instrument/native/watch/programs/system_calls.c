#include "system_calls.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "aside.h"
#include "births.h"
#include "clock_reads.h"
#include "guarded.h"
#include "mappings.h"
#include "neighbours.h"
#include "resting.h"
#include "watched.h"

typedef uint64_t word;

enum { VECTORS = 1024, PAGE = 4096, CALLS = 512 }; /* the kernel accepts no more vectors (UIO_MAXIOV) */
enum { IO_EVENT = 32 };                            /* bytes of a struct io_event (linux/aio_abi.h) */
enum { STRUCTURE = 64 };                           /* words of a structure that are looked at */
enum { WAITED = 24 };                              /* bytes of a struct futex_waitv (linux/futex.h) */

#ifndef SYS_mseal /* Linux 6.10 */
#define SYS_mseal 462
#endif
#ifndef SYS_futex_waitv /* Linux 5.16 */
#define SYS_futex_waitv 449
#endif

static void reads(word start, word bytes)
{
    ffm_aside_system_call(start, bytes, false);
}

static void writes(word start, word bytes)
{
    ffm_aside_system_call(start, bytes, true);
}

/* Where the system would answer EFAULT, nothing is read here either. */
static void text(word start)
{
    const word bytes = ffm_guarded_text(start);
    if (bytes != 0)
        reads(start, bytes);
}

static void vectors(word start, word count, bool writing)
{
    struct iovec vector;
    if (count == 0 || count > VECTORS)
        return;
    reads(start, count * sizeof vector);
    for (word i = 0; i < count && ffm_guarded_read(&vector, start + i * sizeof vector, sizeof vector); i++)
        ffm_aside_system_call((word)vector.iov_base, vector.iov_len, writing);
}

static void message(word start, bool writing)
{
    struct msghdr header;
    ffm_aside_system_call(start, sizeof header, writing);
    if (!ffm_guarded_read(&header, start, sizeof header))
        return;
    ffm_aside_system_call((word)header.msg_name, header.msg_namelen, writing);
    ffm_aside_system_call((word)header.msg_control, header.msg_controllen, writing);
    vectors((word)header.msg_iov, header.msg_iovlen, writing);
}

static void messages(word start, word count, bool writing)
{
    if (count > VECTORS)
        return;
    writes(start, count * sizeof(struct mmsghdr));
    for (word i = 0; i < count; i++)
        message(start + i * sizeof(struct mmsghdr) + offsetof(struct mmsghdr, msg_hdr), writing);
}

/* What a process does to its own memory through this call. */
static void other_process(const word *a, bool writing)
{
    vectors(a[1], a[2], !writing);
    if (a[0] == (word)getpid())
        vectors(a[3], a[4], writing);
    else
        reads(a[3], a[4] * sizeof(struct iovec));
}

static void gone(word start, word bytes)
{
    ffm_watch_gone(start, start + bytes);
    ffm_watch_released(start, bytes, true);
}

static void changed(word start, word bytes)
{
    ffm_watch_gone(start, start + bytes);
    ffm_watch_released(start, bytes, false);
}

/* The kernel works on pages at an arbitrary later time, or lets others do so. */
static void unseen(void)
{
    ffm_watch_give_up();
}

static void mapped(const word *a)
{
    if (a[3] & MAP_FIXED)
        gone(a[0], a[1]);
}

static void remapped(const word *a)
{
    if (a[1] == 0) /* the memory gets a second place (mremap(2)) */
        unseen();
    changed(a[0], a[1]);
    if (a[3] & MREMAP_FIXED)
        gone(a[4], a[2]);
}

/* The system examines the pages, but does not use their content. */
static void visited(word start, word bytes)
{
    ffm_aside(start, start + bytes);
}

static void advised(const word *a)
{
    enum { POPULATE_READ = 22, POPULATE_WRITE = 23 }; /* MADV_POPULATE_… (Linux 5.14) */
    if (a[2] == POPULATE_READ || a[2] == POPULATE_WRITE)
        visited(a[0], a[1]);
    if (a[2] == MADV_DONTNEED || a[2] == MADV_FREE || a[2] == MADV_REMOVE)
        gone(a[0], a[1]);
}

/* Three sets of `count` files, and a time. */
static void file_sets(const word *a, word time_bytes)
{
    for (int i = 1; i <= 3; i++)
        writes(a[i], (a[0] + 63) / 64 * sizeof(word));
    writes(a[4], time_bytes);
}

static void heap_end(word wanted)
{
    const word now = (word)sbrk(0);
    if (wanted != 0 && wanted < now)
        gone(wanted, now - wanted);
}

/* The arguments of another program, or its environment. */
static void texts(word start)
{
    word each;
    for (; ffm_guarded_read(&each, start, sizeof each) && each != 0; start += sizeof each) {
        reads(start, sizeof each);
        text(each);
    }
}

static void executes(word path, word arguments, word environment)
{
    text(path);
    texts(arguments);
    texts(environment);
}

void ffm_system_call_starts(word path, word arguments, word environment)
{
    executes(path, arguments, environment);
    ffm_aside_over();
}

/* An unknown call: any argument may be an address, of something smaller than a page. */
static void unknown(const word *a)
{
    for (int i = 0; i < 6; i++) {
        if (a[i] < PAGE || !ffm_ranges_overlap(a[i], a[i] + PAGE))
            continue;
        writes(a[i], 1);
        ffm_aside(a[i], a[i] + PAGE);
    }
}

/* Also, any word of a structure may be an address, where the kernel reads or writes as much as it likes. */
static void addresses(const word *a, word start, word bytes)
{
    word words[STRUCTURE];
    const word count = bytes / sizeof *words < STRUCTURE ? bytes / sizeof *words : STRUCTURE;
    unknown(a);
    if (!ffm_guarded_read(words, start, count * sizeof *words))
        return;
    for (word i = 0; i < count; i++)
        if (words[i] >= PAGE && ffm_ranges_overlap(words[i], words[i] + PAGE))
            unseen();
}

/* Bytes of the structure of an `ioctl`. Old requests do not say: those of terminals hold no addresses, that of SCSI is
 * the largest (struct sg_io_hdr). */
static word control_bytes(word request)
{
    enum { UNSAID = 88, TERMINALS = 'T' };
    if (_IOC_SIZE(request) != 0)
        return _IOC_SIZE(request);
    return _IOC_TYPE(request) == TERMINALS ? 0 : UNSAID;
}

/* X(name, what it touches), with its arguments in the words a[]. Calls that are not listed are `unknown`. */
#define SYSTEM_CALLS(X)                                                                                                \
    X(read, writes(a[1], a[2]))                                                                                        \
    X(write, reads(a[1], a[2]))                                                                                        \
    X(pread64, writes(a[1], a[2]))                                                                                     \
    X(pwrite64, reads(a[1], a[2]))                                                                                     \
    X(readv, vectors(a[1], a[2], true))                                                                                \
    X(writev, vectors(a[1], a[2], false))                                                                              \
    X(preadv, vectors(a[1], a[2], true))                                                                               \
    X(pwritev, vectors(a[1], a[2], false))                                                                             \
    X(preadv2, vectors(a[1], a[2], true))                                                                              \
    X(pwritev2, vectors(a[1], a[2], false))                                                                            \
    X(vmsplice, vectors(a[1], a[2], false))                                                                            \
    X(process_vm_readv, other_process(a, false))                                                                       \
    X(process_vm_writev, other_process(a, true))                                                                       \
    X(sendto, (reads(a[1], a[2]), reads(a[4], a[5])))                                                                  \
    X(recvfrom, (writes(a[1], a[2]), writes(a[4], sizeof(struct sockaddr_storage)), writes(a[5], sizeof(socklen_t))))  \
    X(sendmsg, message(a[1], false))                                                                                   \
    X(recvmsg, message(a[1], true))                                                                                    \
    X(sendmmsg, messages(a[1], a[2], false))                                                                           \
    X(recvmmsg, messages(a[1], a[2], true))                                                                            \
    X(msgsnd, reads(a[1], sizeof(long) + a[2]))                                                                        \
    X(msgrcv, writes(a[1], sizeof(long) + a[2]))                                                                       \
    X(mq_timedsend, (reads(a[1], a[2]), reads(a[4], sizeof(struct timespec))))                                         \
    X(mq_timedreceive, (writes(a[1], a[2]), writes(a[3], sizeof(int)), reads(a[4], sizeof(struct timespec))))          \
    X(select, file_sets(a, sizeof(struct timeval)))                                                                    \
    X(pselect6, (file_sets(a, sizeof(struct timespec)), reads(a[5], 2 * sizeof(word))))                                \
    X(io_getevents, (writes(a[3], a[2] * IO_EVENT), reads(a[4], sizeof(struct timespec))))                             \
    X(getxattr, (text(a[0]), text(a[1]), writes(a[2], a[3])))                                                          \
    X(setxattr, (text(a[0]), text(a[1]), reads(a[2], a[3])))                                                           \
    X(fgetxattr, (text(a[1]), writes(a[2], a[3])))                                                                     \
    X(fsetxattr, (text(a[1]), reads(a[2], a[3])))                                                                      \
    X(add_key, (text(a[0]), text(a[1]), reads(a[2], a[3])))                                                            \
    X(getrandom, writes(a[0], a[1]))                                                                                   \
    X(getdents64, writes(a[1], a[2]))                                                                                  \
    X(getcwd, writes(a[0], a[1]))                                                                                      \
    X(poll, writes(a[0], a[1] * sizeof(struct pollfd)))                                                                \
    X(ppoll, (writes(a[0], a[1] * sizeof(struct pollfd)), reads(a[2], sizeof(struct timespec)), reads(a[3], a[4])))    \
    X(epoll_wait, writes(a[1], a[2] * sizeof(struct epoll_event)))                                                     \
    X(epoll_pwait, (writes(a[1], a[2] * sizeof(struct epoll_event)), reads(a[4], a[5])))                               \
    X(open, text(a[0]))                                                                                                \
    X(openat, text(a[1]))                                                                                              \
    X(stat, (text(a[0]), writes(a[1], sizeof(struct stat))))                                                           \
    X(lstat, (text(a[0]), writes(a[1], sizeof(struct stat))))                                                          \
    X(fstat, writes(a[1], sizeof(struct stat)))                                                                        \
    X(newfstatat, (text(a[1]), writes(a[2], sizeof(struct stat))))                                                     \
    X(access, text(a[0]))                                                                                              \
    X(readlink, (text(a[0]), writes(a[1], a[2])))                                                                      \
    X(readlinkat, (text(a[1]), writes(a[2], a[3])))                                                                    \
    X(unlink, text(a[0]))                                                                                              \
    X(rename, (text(a[0]), text(a[1])))                                                                                \
    X(mkdir, text(a[0]))                                                                                               \
    X(chdir, text(a[0]))                                                                                               \
    X(nanosleep, (reads(a[0], sizeof(struct timespec)), writes(a[1], sizeof(struct timespec))))                        \
    X(clock_nanosleep, (reads(a[2], sizeof(struct timespec)), writes(a[3], sizeof(struct timespec))))                  \
    X(times, writes(a[0], sizeof(struct tms)))                                                                         \
    X(getrusage, writes(a[1], sizeof(struct rusage)))                                                                  \
    X(clock_gettime, writes(a[1], sizeof(struct timespec)))                                                            \
    X(gettimeofday, (writes(a[0], sizeof(struct timeval)), writes(a[1], sizeof(struct timezone))))                     \
    X(time, writes(a[0], sizeof(time_t)))                                                                              \
    X(munmap, gone(a[0], a[1]))                                                                                        \
    X(mmap, mapped(a))                                                                                                 \
    X(mremap, remapped(a))                                                                                             \
    X(madvise, advised(a))                                                                                             \
    X(mprotect, changed(a[0], a[1]))                                                                                   \
    X(pkey_mprotect, changed(a[0], a[1]))                                                                              \
    X(mseal, changed(a[0], a[1]))                                                                                      \
    X(mlock, visited(a[0], a[1]))                                                                                      \
    X(mlock2, visited(a[0], a[1]))                                                                                     \
    X(munlock, (void)0)                                                                                                \
    X(mincore, writes(a[2], a[1] / PAGE + 1))                                                                          \
    X(move_pages,                                                                                                      \
      (reads(a[2], a[1] * sizeof(word)), reads(a[3], a[1] * sizeof(int)), writes(a[4], a[1] * sizeof(int))))           \
    X(brk, heap_end(a[0]))                                                                                             \
    X(execve, executes(a[0], a[1], a[2]))                                                                              \
    X(execveat, executes(a[1], a[2], a[3]))                                                                            \
    X(ioctl, addresses(a, a[2], control_bytes(a[1])))                                                                  \
    X(setsockopt, addresses(a, a[3], a[4]))                                                                            \
    X(bpf, addresses(a, a[1], a[2]))                                                                                   \
    X(futex_waitv, addresses(a, a[0], a[1] * WAITED))                                                                  \
    X(io_uring_register, addresses(a, a[2], a[3] * sizeof(struct iovec)))                                              \
    X(io_submit, unseen())                                                                                             \
    X(io_uring_enter, unseen())                                                                                        \
    X(close, (void)0)                                                                                                  \
    X(lseek, (void)0)                                                                                                  \
    X(sched_yield, (void)0)                                                                                            \
    X(getpid, (void)0)                                                                                                 \
    X(gettid, (void)0)                                                                                                 \
    X(exit, (void)0)                                                                                                   \
    X(exit_group, (void)0)

#define PLACE(name, touch) PLACE_##name,
enum { PLACE_unknown, SYSTEM_CALLS(PLACE) };
#define NUMBER(name, touch) [SYS_##name] = PLACE_##name,
static const uint8_t places[CALLS] = {SYSTEM_CALLS(NUMBER)};

/* The kernel's own thread takes requests by itself. */
static bool polls(word parameters)
{
    enum { POLLED = 2 };     /* IORING_SETUP_SQPOLL of linux/io_uring.h */
    uint32_t flags[3] = {0}; /* struct io_uring_params: two sizes, then the flags */
    return ffm_guarded_read(flags, parameters, sizeof flags) && (flags[2] & POLLED) != 0;
}

/* Whether the kernel uses memory at any later time, without another call; also what is downloaded there later. */
static bool is_delayed(uint64_t number, const uint64_t *a)
{
    switch (number) {
    case SYS_io_uring_setup:
        return polls(a[1]);
    case SYS_io_uring_enter: /* a request may wait for another one, or until its file is ready */
        return a[1] != 0;
    case SYS_vmsplice:
        return true;
    case SYS_sendto:
    case SYS_sendmmsg:
        return (a[3] & MSG_ZEROCOPY) != 0;
    case SYS_sendmsg:
        return (a[2] & MSG_ZEROCOPY) != 0;
    default:
        return false;
    }
}

/* What a timer has left tells the time as well, also where that is returned while it is set. */
static bool reads_clock(uint64_t number, const uint64_t *a)
{
    switch (number) {
    case SYS_clock_gettime:
    case SYS_gettimeofday:
    case SYS_time:
    case SYS_times:
    case SYS_getrusage:
    case SYS_sysinfo:
    case SYS_getitimer:
    case SYS_timer_gettime:
    case SYS_timerfd_gettime:
        return true;
    case SYS_setitimer:
        return a[2] != 0;
    case SYS_timer_settime:
    case SYS_timerfd_settime:
        return a[3] != 0;
    default:
        return false;
    }
}

void ffm_system_call_before(uint64_t number, const uint64_t *a, const ffm_registers *from)
{
    ffm_births_before(number, a, from);
    if (is_delayed(number, a) || ffm_neighbours_before(number, a))
        ffm_watch_lose();
    if (reads_clock(number, a))
        ffm_clock_read((const void *)from->instruction, from);
    if (number == SYS_pkey_alloc)
        ffm_resting_without_keys();
    if (number == SYS_mremap && a[1] == 0)
        ffm_watch_shared();
    if (number == SYS_munmap || number == SYS_mremap || (number == SYS_mmap && (a[3] & MAP_FIXED)))
        ffm_mappings_changed();
    if (!ffm_watch_active())
        return;
#define CASE(name, touch)                                                                                              \
    case PLACE_##name:                                                                                                 \
        touch;                                                                                                         \
        break;
    switch (number < CALLS ? places[number] : PLACE_unknown) {
        SYSTEM_CALLS(CASE)
    default:
        unknown(a);
    }
}

void ffm_system_call_after(void)
{
    ffm_aside_over();
}
