#include "system_calls.h"

#include <linux/futex.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sem.h>
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
#include "calls_in_progress.h"
#include "clock_reads.h"
#include "closed_memory.h"
#include "filters.h"
#include "guarded.h"
#include "keys.h"
#include "mappings.h"
#include "neighbours.h"
#include "quick_places.h"
#include "resting.h"
#include "signals.h"
#include "structures.h"
#include "traced.h"
#include "watched.h"

typedef uint64_t word;

enum { PAGE = 4096, CALLS = 512 };
enum { IO_EVENT = 32 }; /* bytes of a struct io_event (linux/aio_abi.h) */
enum { WAITED = 24 };   /* bytes of a struct futex_waitv (linux/futex.h) */

#ifndef SYS_epoll_pwait2 /* Linux 5.11 */
#define SYS_epoll_pwait2 441
#endif
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

static void text(word start)
{
    ffm_structure_text(start);
}

static void gone(word start, word bytes)
{
    if (!ffm_watch_active())
        return;
    ffm_watch_gone(start, start + bytes);
    ffm_watch_released(start, bytes, true);
}

static void changed(word start, word bytes)
{
    if (!ffm_watch_active())
        return;
    ffm_watch_gone(start, start + bytes);
    ffm_watch_released(start, bytes, false);
}

/* The kernel works on pages at an arbitrary later time, or lets others do so. */
static void unseen(void)
{
    if (ffm_watch_active())
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
    ffm_call_in_progress_uses(start, start + bytes, true);
    ffm_aside(start, start + bytes);
}

/* Advice that the C library's headers may lack. */
enum { POPULATE_READ = 22, POPULATE_WRITE = 23, COLLAPSE = 25 }; /* Linux 5.14, 5.14, 6.1 */
enum { DONTNEED_LOCKED = 24, GUARD_INSTALL = 102 };              /* Linux 5.18, 6.13 */

static void advised(const word *a)
{
    switch (a[2]) {
    case POPULATE_READ:
    case POPULATE_WRITE:
    case COLLAPSE:
        visited(a[0], a[1]);
        break;
    case MADV_DONTNEED:
    case MADV_FREE:
    case MADV_REMOVE:
    case DONTNEED_LOCKED:
    case GUARD_INSTALL:
        gone(a[0], a[1]);
        break;
    default:
        break;
    }
}

static void heap_end(word wanted)
{
    const word now = (word)sbrk(0);
    if (wanted != 0 && wanted < now)
        gone(wanted, now - wanted);
}

void ffm_system_call_starts(word path, word arguments, word environment)
{
    ffm_structure_executes(path, arguments, environment);
    ffm_aside_over();
}

/* X(name, what it touches), with its arguments in the words a[]. Calls that are not listed are `unknown`. */
#define SYSTEM_CALLS(X)                                                                                                \
    X(read, writes(a[1], a[2]))                                                                                        \
    X(write, reads(a[1], a[2]))                                                                                        \
    X(pread64, writes(a[1], a[2]))                                                                                     \
    X(pwrite64, reads(a[1], a[2]))                                                                                     \
    X(readv, ffm_structure_vectors(a[1], a[2], true))                                                                  \
    X(writev, ffm_structure_vectors(a[1], a[2], false))                                                                \
    X(preadv, ffm_structure_vectors(a[1], a[2], true))                                                                 \
    X(pwritev, ffm_structure_vectors(a[1], a[2], false))                                                               \
    X(preadv2, ffm_structure_vectors(a[1], a[2], true))                                                                \
    X(pwritev2, ffm_structure_vectors(a[1], a[2], false))                                                              \
    X(vmsplice, ffm_structure_vectors(a[1], a[2], false))                                                              \
    X(process_vm_readv, ffm_structure_other_process(a, false))                                                         \
    X(process_vm_writev, ffm_structure_other_process(a, true))                                                         \
    X(sendto, (reads(a[1], a[2]), reads(a[4], a[5])))                                                                  \
    X(recvfrom, (writes(a[1], a[2]), writes(a[4], sizeof(struct sockaddr_storage)), writes(a[5], sizeof(socklen_t))))  \
    X(sendmsg, ffm_structure_message(a[1], false))                                                                     \
    X(recvmsg, ffm_structure_message(a[1], true))                                                                      \
    X(sendmmsg, ffm_structure_messages(a[1], a[2], false))                                                             \
    X(recvmmsg, (ffm_structure_messages(a[1], a[2], true), writes(a[4], sizeof(struct timespec))))                     \
    X(msgsnd, reads(a[1], sizeof(long) + a[2]))                                                                        \
    X(msgrcv, writes(a[1], sizeof(long) + a[2]))                                                                       \
    X(mq_timedsend, (reads(a[1], a[2]), reads(a[4], sizeof(struct timespec))))                                         \
    X(mq_timedreceive, (writes(a[1], a[2]), writes(a[3], sizeof(int)), reads(a[4], sizeof(struct timespec))))          \
    X(select, ffm_structure_file_sets(a, sizeof(struct timeval)))                                                      \
    X(pselect6, (ffm_structure_file_sets(a, sizeof(struct timespec)), ffm_structure_mask(a[5])))                       \
    X(io_getevents, (writes(a[3], a[2] * IO_EVENT), reads(a[4], sizeof(struct timespec))))                             \
    X(getxattr, (text(a[0]), text(a[1]), writes(a[2], a[3])))                                                          \
    X(setxattr, (text(a[0]), text(a[1]), reads(a[2], a[3])))                                                           \
    X(fgetxattr, (text(a[1]), writes(a[2], a[3])))                                                                     \
    X(fsetxattr, (text(a[1]), reads(a[2], a[3])))                                                                      \
    X(add_key, (text(a[0]), text(a[1]), reads(a[2], a[3])))                                                            \
    X(getrandom, writes(a[0], a[1]))                                                                                   \
    X(io_pgetevents, (writes(a[3], a[2] * IO_EVENT), reads(a[4], sizeof(struct timespec)), ffm_structure_mask(a[5])))  \
    X(epoll_pwait2, (writes(a[1], (uint32_t)a[2] * sizeof(struct epoll_event)), reads(a[3], sizeof(struct timespec)),  \
                     reads(a[4], a[5])))                                                                               \
    X(lgetxattr, (text(a[0]), text(a[1]), writes(a[2], a[3])))                                                         \
    X(lsetxattr, (text(a[0]), text(a[1]), reads(a[2], a[3])))                                                          \
    X(listxattr, (text(a[0]), writes(a[1], a[2])))                                                                     \
    X(llistxattr, (text(a[0]), writes(a[1], a[2])))                                                                    \
    X(flistxattr, writes(a[1], a[2]))                                                                                  \
    X(keyctl, (ffm_structure_unknown(a), writes(a[2], a[3])))                                                          \
    X(getgroups, writes(a[1], (uint32_t)a[0] * sizeof(gid_t)))                                                         \
    X(setgroups, reads(a[1], (uint32_t)a[0] * sizeof(gid_t)))                                                          \
    X(sched_getaffinity, writes(a[2], a[1]))                                                                           \
    X(sched_setaffinity, reads(a[2], a[1]))                                                                            \
    X(semop, reads(a[1], a[2] * sizeof(struct sembuf)))                                                                \
    X(semtimedop, (reads(a[1], a[2] * sizeof(struct sembuf)), reads(a[3], sizeof(struct timespec))))                   \
    X(semctl, ffm_structure_semaphores(a))                                                                             \
    X(syslog, writes(a[1], a[2]))                                                                                      \
    X(modify_ldt, writes(a[1], a[2]))                                                                                  \
    X(prctl, (ffm_structure_unknown(a), ffm_structure_filter(a[0] == PR_SET_SECCOMP ? a[2] : 0)))                      \
    X(getdents, writes(a[1], a[2]))                                                                                    \
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
    X(execve, ffm_structure_executes(a[0], a[1], a[2]))                                                                \
    X(execveat, ffm_structure_executes(a[1], a[2], a[3]))                                                              \
    X(ioctl, ffm_structure_control(a))                                                                                 \
    X(setsockopt, ffm_structure_option(a, false))                                                                      \
    X(getsockopt, ffm_structure_option(a, true))                                                                       \
    X(seccomp, (ffm_structure_unknown(a), ffm_structure_filter(a[2])))                                                 \
    X(bpf, ffm_structure_addresses(a, a[1], a[2]))                                                                     \
    X(futex_waitv, ffm_structure_addresses(a, a[0], a[1] * WAITED))                                                    \
    X(futex, ffm_structure_word(a))                                                                                    \
    X(io_uring_register, unseen())                                                                                     \
    X(io_submit, unseen())                                                                                             \
    X(io_uring_enter, unseen())                                                                                        \
    X(close, (void)0)                                                                                                  \
    X(lseek, (void)0)                                                                                                  \
    X(sched_yield, (void)0)                                                                                            \
    X(getpid, (void)0)                                                                                                 \
    X(getppid, (void)0)                                                                                                \
    X(gettid, (void)0)                                                                                                 \
    X(exit, (void)0)                                                                                                   \
    X(exit_group, (void)0)

#define PLACE(name, touch) PLACE_##name,
enum { PLACE_unknown, SYSTEM_CALLS(PLACE) };
#define NUMBER(name, touch) [SYS_##name] = PLACE_##name,
static const uint8_t places[CALLS] = {SYSTEM_CALLS(NUMBER)};

bool ffm_system_call_is_known(uint64_t number)
{
    switch (number) {
    case SYS_bpf:
    case SYS_futex_waitv:
    case SYS_getsockopt:
    case SYS_io_submit:
    case SYS_io_uring_enter:
    case SYS_io_uring_register:
    case SYS_ioctl:
    case SYS_keyctl:
    case SYS_prctl:
    case SYS_seccomp:
    case SYS_semctl:
    case SYS_setsockopt:
        return false; /* structures that describe themselves */
    default:
        return number < CALLS && places[number] != PLACE_unknown;
    }
}

bool ffm_system_call_is_plain(uint64_t number, const uint64_t *a, ffm_plain_use *use)
{
    switch (number) {
    case SYS_write:
    case SYS_pwrite64:
        *use = (ffm_plain_use){a[1], a[2], false};
        return true;
    case SYS_pread64:
        *use = (ffm_plain_use){a[1], a[2], true};
        return true;
    case SYS_fstat:
        *use = (ffm_plain_use){a[1], sizeof(struct stat), true};
        return true;
    case SYS_lseek:
    case SYS_sched_yield:
    case SYS_getpid:
    case SYS_gettid:
    case SYS_getppid:
        *use = (ffm_plain_use){0};
        return true;
    case SYS_futex: /* to wake others does not wait */
        *use = (ffm_plain_use){a[0], sizeof(uint32_t), true};
        return (a[1] & FUTEX_CMD_MASK) == FUTEX_WAKE || (a[1] & FUTEX_CMD_MASK) == FUTEX_WAKE_BITSET;
    default:
        return false;
    }
}

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

/* The time that a timer has left tells the time as well, also when setting the timer returns it. */
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

/* Whether the program gives the kernel a filter of system calls that does not let pages be protected. */
static bool forbids_protecting(uint64_t number, const uint64_t *a)
{
    const bool by_prctl = number == SYS_prctl && a[0] == PR_SET_SECCOMP && a[1] == SECCOMP_MODE_FILTER;
    const bool by_seccomp = number == SYS_seccomp && a[0] == SECCOMP_SET_MODE_FILTER;
    if (ffm_trace_on() || !(by_prctl || by_seccomp))
        return false;
    static const uint64_t rights[] = {PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE};
    for (uint32_t i = 0; i < sizeof rights / sizeof *rights; i++) {
        const uint64_t arguments[6] = {0, PAGE, rights[i]};
        if (!ffm_filter_allows(a[2], ffm_keys_used() ? SYS_pkey_mprotect : SYS_mprotect, arguments))
            return true;
    }
    return false;
}

void ffm_system_call_before(uint64_t number, const uint64_t *a, const ffm_registers *from)
{
    ffm_births_before(number, a, from);
    if (is_delayed(number, a) || ffm_neighbours_before(number, a) || forbids_protecting(number, a))
        ffm_watch_lose();
    if (reads_clock(number, a))
        ffm_clock_read((const void *)from->instruction, from);
    if (number == SYS_seccomp || (number == SYS_prctl && a[0] == PR_SET_SECCOMP)) {
        ffm_quick_places_stop();
        ffm_closed_memory_stop();
    }
    if (number == SYS_tgkill)
        ffm_signals_sent_to_thread(a[2]);
    if (number == SYS_pkey_alloc)
        ffm_resting_without_keys();
    if (number == SYS_mremap && a[1] == 0)
        ffm_watch_shared();
    if (number == SYS_munmap || number == SYS_mremap || (number == SYS_mmap && (a[3] & MAP_FIXED)))
        ffm_mappings_changed();
    if (!ffm_watch_active() && ffm_trace_on())
        return; /* nothing is protected */
#define CASE(name, touch)                                                                                              \
    case PLACE_##name:                                                                                                 \
        touch;                                                                                                         \
        break;
    switch (number < CALLS ? places[number] : PLACE_unknown) {
        SYSTEM_CALLS(CASE)
    default:
        ffm_structure_unknown(a);
    }
}

void ffm_system_call_after(void)
{
    ffm_aside_over();
}
