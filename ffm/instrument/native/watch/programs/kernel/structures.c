#include "structures.h"

#include <linux/filter.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "aside.h"
#include "calls_in_progress.h"
#include "guarded.h"
#include "kernel.h"
#include "questions.h"
#include "watched.h"

typedef uint64_t word;

enum { VECTORS = 1024, PAGE = 4096 }; /* the kernel accepts no more vectors (UIO_MAXIOV), and sends no more messages */
enum { STRUCTURE = 64 };              /* words of a structure that are looked at once */

static void reads(word start, word bytes)
{
    ffm_aside_system_call(start, bytes, false);
}

static void writes(word start, word bytes)
{
    ffm_aside_system_call(start, bytes, true);
}

void ffm_structure_text(word start)
{
    const word bytes = ffm_guarded_text(start);
    if (bytes != 0)
        reads(start, bytes);
}

void ffm_structure_vectors(word start, word count, bool writing)
{
    struct iovec vector;
    if (count == 0 || count > VECTORS)
        return;
    reads(start, count * sizeof vector);
    for (word i = 0; i < count && ffm_guarded_read(&vector, start + i * sizeof vector, sizeof vector); i++)
        ffm_aside_system_call((word)vector.iov_base, vector.iov_len, writing);
}

static bool message(word start, bool writing)
{
    struct msghdr header;
    ffm_aside_system_call(start, sizeof header, writing);
    if (!ffm_guarded_read(&header, start, sizeof header))
        return false;
    ffm_aside_system_call((word)header.msg_name, header.msg_namelen, writing);
    ffm_aside_system_call((word)header.msg_control, header.msg_controllen, writing);
    ffm_structure_vectors((word)header.msg_iov, header.msg_iovlen, writing);
    return true;
}

void ffm_structure_message(word start, bool writing)
{
    message(start, writing);
}

/* As many as the program likes are received at once. */
void ffm_structure_messages(word start, word given, bool writing)
{
    const uint32_t count = writing || (uint32_t)given < VECTORS ? (uint32_t)given : VECTORS;
    writes(start, count * sizeof(struct mmsghdr));
    for (word i = 0; i < count; i++)
        if (!message(start + i * sizeof(struct mmsghdr) + offsetof(struct mmsghdr, msg_hdr), writing))
            break;
}

void ffm_structure_other_process(const word *a, bool writing)
{
    ffm_structure_vectors(a[1], a[2], !writing);
    if (a[0] == (word)getpid())
        ffm_structure_vectors(a[3], a[4], writing);
    else
        reads(a[3], a[4] * sizeof(struct iovec));
}

/* Three sets of `count` files, and a time. */
void ffm_structure_file_sets(const word *a, word time_bytes)
{
    for (int i = 1; i <= 3; i++)
        writes(a[i], (a[0] + 63) / 64 * sizeof(word));
    writes(a[4], time_bytes);
}

/* The arguments of another program, or its environment. */
static void texts(word start)
{
    word each;
    for (; ffm_guarded_read(&each, start, sizeof each) && each != 0; start += sizeof each) {
        reads(start, sizeof each);
        ffm_structure_text(each);
    }
}

void ffm_structure_executes(word path, word arguments, word environment)
{
    ffm_structure_text(path);
    texts(arguments);
    texts(environment);
}

void ffm_structure_unknown(const word *a)
{
    for (int i = 0; i < 6; i++) {
        if (a[i] < PAGE)
            continue;
        ffm_call_in_progress_uses(a[i], a[i] + PAGE, true);
        if (!ffm_ranges_overlap(a[i], a[i] + PAGE))
            continue;
        writes(a[i], 1);
        ffm_aside(a[i], a[i] + PAGE);
    }
}

void ffm_structure_addresses(const word *a, word start, word bytes)
{
    word words[STRUCTURE];
    ffm_structure_unknown(a);
    if (!ffm_watch_active())
        return;
    for (word left = bytes / sizeof *words, count; left > 0; left -= count, start += count * sizeof *words) {
        count = left < STRUCTURE ? left : STRUCTURE;
        if (!ffm_guarded_read(words, start, count * sizeof *words))
            return;
        for (word i = 0; i < count; i++)
            if (words[i] >= PAGE && ffm_ranges_overlap(words[i], words[i] + PAGE))
                ffm_watch_give_up();
    }
}

/* Old requests do not say how large their structure is: those of terminals hold no addresses, that of SCSI is the
 * largest (struct sg_io_hdr). */
void ffm_structure_control(const word *a)
{
    enum { UNSAID = 88, TERMINALS = 'T' };
    const word request = a[1];
    const word unsaid = _IOC_TYPE(request) == TERMINALS ? 0 : UNSAID;
    writes(a[2], _IOC_SIZE(request));
    ffm_structure_addresses(a, a[2], _IOC_SIZE(request) != 0 ? _IOC_SIZE(request) : unsaid);
}

void ffm_structure_mask(word start)
{
    word described[2]; /* its address and its bytes */
    reads(start, sizeof described);
    if (start != 0 && ffm_guarded_read(described, start, sizeof described))
        reads(described[0], described[1]);
}

void ffm_structure_word(const word *a)
{
    writes(a[0], sizeof(uint32_t));
    switch (a[1] & FUTEX_CMD_MASK) {
    case FUTEX_WAKE:
    case FUTEX_WAKE_BITSET:
    case FUTEX_UNLOCK_PI:
    case FUTEX_TRYLOCK_PI:
        return;
    case FUTEX_REQUEUE:
    case FUTEX_CMP_REQUEUE:
    case FUTEX_CMP_REQUEUE_PI:
    case FUTEX_WAKE_OP: /* instead of a time, a number */
        writes(a[4], sizeof(uint32_t));
        return;
    case FUTEX_WAIT_REQUEUE_PI:
        writes(a[4], sizeof(uint32_t));
        break;
    default:
        break;
    }
    reads(a[3], sizeof(struct timespec));
}

void ffm_structure_filter(word start)
{
    struct sock_fprog filter;
    reads(start, sizeof filter);
    if (start != 0 && ffm_guarded_read(&filter, start, sizeof filter))
        reads((word)filter.filter, filter.len * sizeof *filter.filter);
}

void ffm_structure_option(const word *a, bool writing)
{
    socklen_t bytes = (socklen_t)a[4];
    const bool is_filter = a[1] == SOL_SOCKET && a[2] == SO_GET_FILTER; /* SO_ATTACH_FILTER is the same number */
    if (!writing) {
        reads(a[3], bytes);
        if (is_filter)
            ffm_structure_filter(a[3]);
        ffm_structure_addresses(a, a[3], bytes);
        return;
    }
    writes(a[4], sizeof bytes);
    if (ffm_guarded_read(&bytes, a[4], sizeof bytes))
        writes(a[3], is_filter ? bytes * sizeof(struct sock_filter) : bytes);
    ffm_structure_unknown(a);
}

void ffm_structure_semaphores(const word *a)
{
    struct semid_ds set;
    const int command = (int)a[2];
    if (command != GETALL && command != SETALL)
        ffm_structure_unknown(a);
    else if (ffm_kernel(SYS_semctl, a[0], 0, IPC_STAT, (word)&set) == 0)
        ffm_aside_system_call(a[3], set.sem_nsems * sizeof(uint16_t), command == GETALL);
}
