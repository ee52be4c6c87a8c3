#include "downloads.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "blocks.h"
#include "driver.h"
#include "maps.h"
#include "raw_calls.h"
#include "staging.h"
#include "system_calls.h"

enum { LATE = 256, PAGE = 4096, WORD_ROOM = 256, PATIENCE_S = 2 };

typedef ffm_download_late download;

static struct {
    bool locked;
    bool off;
    bool opened;
    int memory; /* /proc/self/mem: writes pages that are closed */
    struct sigaction previous;
    uint32_t version; /* odd while `late` changes */
    download late[LATE];
} downloads = {.memory = -1};

uint32_t ffm_downloads_late;

/* The last fault of this thread on a page without late downloads, and `version` then. */
static __thread struct {
    uint64_t address;
    uint32_t version;
} unclaimed __attribute__((tls_model("initial-exec")));

/* Of the lock's holder. */
static __thread uint64_t signals_before __attribute__((tls_model("initial-exec")));

/* The lock is taken in a signal handler too: no signal may interrupt its holder, and nothing under it touches a closed
 * page. Raw system calls: the library's own are guarded (guards.c). */
static void lock(void)
{
    uint64_t all = ~(uint64_t)0, before;
    ffm_system_call(SYS_rt_sigprocmask, SIG_SETMASK, (uint64_t)&all, (uint64_t)&before, sizeof all);
    while (__atomic_test_and_set(&downloads.locked, __ATOMIC_ACQUIRE))
        sched_yield();
    signals_before = before;
}

static void unlock(void)
{
    uint64_t before = signals_before;
    __atomic_clear(&downloads.locked, __ATOMIC_RELEASE);
    ffm_system_call(SYS_rt_sigprocmask, SIG_SETMASK, (uint64_t)&before, 0, sizeof before);
}

static uint64_t page_of(uint64_t address)
{
    return address & ~(uint64_t)(PAGE - 1);
}

static uint64_t page_after(uint64_t address)
{
    return page_of(address + PAGE - 1);
}

static bool protect(const download *of, int protection)
{
    uint64_t first = page_of(of->to);
    return ffm_system_call(SYS_mprotect, first, page_after(of->to + of->bytes) - first, (uint64_t)protection, 0) == 0;
}

static bool is_done(const download *it)
{
    return __atomic_load_n(it->done, __ATOMIC_ACQUIRE) == 1;
}

/* Wait without calling the driver; only where that takes unusually long, ask it whether the copy can still happen. */
static bool await(const download *it)
{
    struct timespec began, now, pause = {0, 20000};
    clock_gettime(CLOCK_MONOTONIC, &began);
    for (uint32_t turn = 0; !is_done(it); turn++) {
        if (turn < 1000) {
            __builtin_ia32_pause();
            continue;
        }
        ffm_system_call(SYS_nanosleep, (uint64_t)&pause, 0, 0, 0);
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (now.tv_sec - began.tv_sec <= PATIENCE_S)
            continue;
        int state = ffm_driver.stream_query(it->stream);
        if (state != FFM_CUDA_SUCCESS && state != FFM_CUDA_NOT_READY)
            return false; /* the context is in error: the program will learn it from its next call */
        began = now;
    }
    return true;
}

/* Whether some download is late on these pages. Without the lock: its holder may be waiting for the GPU, and the
 * calling thread may be one of the driver's, which the GPU waits for. */
static bool any_on(uint64_t first, uint64_t last)
{
    while (true) {
        uint32_t version = __atomic_load_n(&downloads.version, __ATOMIC_ACQUIRE);
        uint32_t count = __atomic_load_n(&ffm_downloads_late, __ATOMIC_ACQUIRE);
        bool found = false;
        for (uint32_t i = 0; i < count && i < LATE && !found; i++) {
            uint64_t to = __atomic_load_n(&downloads.late[i].to, __ATOMIC_RELAXED);
            uint64_t end = to + __atomic_load_n(&downloads.late[i].bytes, __ATOMIC_RELAXED);
            found = page_of(to) < last && first < page_after(end);
        }
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (version % 2 == 0 && version == __atomic_load_n(&downloads.version, __ATOMIC_RELAXED))
            return found;
        ffm_system_call(SYS_sched_yield, 0, 0, 0, 0); /* the list changes for as long as a system call lasts */
    }
}

/* Around changes of `late`. Locked. */
static void change(void)
{
    __atomic_add_fetch(&downloads.version, 1, __ATOMIC_ACQ_REL);
}

/* Write the destination while its pages are closed, so that no thread sees it half done. Where that fails nothing is
 * mapped there any more. */
static void write_closed(const download *it)
{
    for (size_t written = 0; written < it->bytes;) {
        int64_t count = ffm_system_call(SYS_pwrite64, (uint64_t)downloads.memory, (uint64_t)it->into + written,
                                        it->bytes - written, it->to + written);
        if (count <= 0)
            return;
        written += (size_t)count;
    }
}

/* Deliver all downloads on some pages, and on those that they share with others. Locked. */
static uint32_t deliver_pages(uint64_t first, uint64_t last)
{
    static uint8_t chosen[LATE];
    uint32_t count = 0;
    memset(chosen, 0, sizeof chosen);
    for (bool more = true; more;) {
        more = false;
        for (uint32_t i = 0; i < ffm_downloads_late; i++) {
            const download *it = &downloads.late[i];
            if (chosen[i] || page_of(it->to) >= last || page_after(it->to + it->bytes) <= first)
                continue;
            chosen[i] = 1;
            count++;
            more = true;
            if (page_of(it->to) < first)
                first = page_of(it->to);
            if (page_after(it->to + it->bytes) > last)
                last = page_after(it->to + it->bytes);
        }
    }
    for (uint32_t i = 0; i < ffm_downloads_late; i++)
        if (chosen[i] && await(&downloads.late[i]) && !downloads.late[i].direct)
            write_closed(&downloads.late[i]);
    change();
    for (uint32_t i = ffm_downloads_late; i > 0; i--) {
        if (!chosen[i - 1])
            continue;
        protect(&downloads.late[i - 1], PROT_READ | PROT_WRITE);
        ffm_staging_release(&downloads.late[i - 1].piece);
        downloads.late[i - 1] = downloads.late[ffm_downloads_late - 1];
        chosen[i - 1] = chosen[ffm_downloads_late - 1];
        __atomic_store_n(&ffm_downloads_late, ffm_downloads_late - 1, __ATOMIC_RELEASE);
        FFM_COUNT(deliveries);
    }
    change();
    return count;
}

static bool deliver(uint64_t first, uint64_t last, uint64_t *why)
{
    if (!any_on(first, last))
        return false;
    int error = errno;
    lock();
    uint32_t count = deliver_pages(first, last);
    unlock();
    errno = error;
    __atomic_fetch_add(why, count, __ATOMIC_RELAXED);
    return count > 0;
}

bool ffm_downloads_deliver(uint64_t start, uint64_t end, uint64_t *why)
{
    return ffm_downloads_pending() && deliver(page_of(start), page_after(end), why);
}

void ffm_downloads_deliver_all(uint64_t *why, bool off)
{
    if (off)
        __atomic_store_n(&downloads.off, true, __ATOMIC_RELEASE);
    ffm_downloads_deliver(0, UINT64_MAX - PAGE, why);
}

void ffm_downloads_settle(void)
{
    if (!ffm_downloads_pending())
        return;
    lock();
    for (uint32_t i = 0; i < ffm_downloads_late;) {
        const download *it = &downloads.late[i];
        uint32_t before = ffm_downloads_late;
        if (is_done(it))
            deliver_pages(page_of(it->to), page_after(it->to + it->bytes));
        i = ffm_downloads_late == before ? i + 1 : 0;
    }
    unlock();
}

void ffm_downloads_before_call(const uint64_t *arguments, int count)
{
    for (int i = 0; i < count && ffm_downloads_pending(); i++)
        ffm_downloads_deliver(arguments[i], arguments[i] + 1, &ffm_counters->deliveries_called);
}

/* Another thread may have delivered what lay on the page since the fault: the access is tried once more. Where it
 * faults again though no page was closed since, it was never ours. */
static bool try_again(uint64_t address)
{
    uint32_t version = __atomic_load_n(&downloads.version, __ATOMIC_ACQUIRE);
    if (unclaimed.address == address && unclaimed.version == version)
        return false;
    unclaimed.address = address;
    unclaimed.version = version;
    return true;
}

/* The signal has its usual effect: a fault happens again, what was sent is sent again. */
static void end_by(int number, bool sent)
{
    const struct sigaction usual = {.sa_handler = SIG_DFL};
    ffm_unguarded_sigaction(number, &usual, NULL);
    if (sent)
        ffm_system_call(SYS_tgkill, (uint64_t)getpid(), (uint64_t)gettid(), (uint64_t)number, 0);
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    const struct sigaction *previous = &downloads.previous;
    uint64_t address = (uint64_t)info->si_addr;
    bool sent = info->si_code <= 0; /* by a process, not by the CPU */
    /* Even where nothing seems to be late: another thread may be closing the page right now. */
    if (!sent &&
        (deliver(page_of(address), page_after(address + 1), &ffm_counters->deliveries_touched) || try_again(address)))
        return;
    if (previous->sa_flags & SA_SIGINFO)
        previous->sa_sigaction(number, info, context);
    else if (previous->sa_handler == SIG_DFL || (previous->sa_handler == SIG_IGN && !sent))
        end_by(number, sent);
    else if (previous->sa_handler != SIG_IGN)
        previous->sa_handler(number);
}

static void at_exit(void)
{
    ffm_downloads_deliver_all(&ffm_counters->deliveries_called, true);
}

static void before_fork(void)
{
    ffm_downloads_deliver_all(&ffm_counters->deliveries_called, false);
}

static int is_mpi(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    (void)data;
    return strstr(info->dlpi_name, "/libmpi") != NULL || strstr(info->dlpi_name, "/libpmpi") != NULL;
}

/* Whether a closed page can be written, tried on one. */
static bool can_write_closed(void)
{
    void *page = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return false;
    const char one = 1;
    bool can = ffm_system_call(SYS_pwrite64, (uint64_t)downloads.memory, (uint64_t)&one, 1, (uint64_t)page) == 1;
    munmap(page, PAGE);
    return can;
}

/* Locked. Memory that another process reads, as MPI may arrange it, would be read before it is delivered. */
static bool open_watch(void)
{
    if (downloads.opened)
        return true;
    downloads.memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
    struct sigaction fault = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigfillset(&fault.sa_mask);
    downloads.opened = downloads.memory >= 0 && can_write_closed() && dl_iterate_phdr(is_mpi, NULL) == 0 &&
                       ffm_guarded() && ffm_unguarded_sigaction(SIGSEGV, &fault, &downloads.previous) == 0 &&
                       atexit(at_exit) == 0 && pthread_atfork(before_fork, NULL, NULL) == 0;
    if (!downloads.opened)
        downloads.off = true;
    return downloads.opened;
}

/* Whether nothing else lies on the pages of the destination: it covers them, or is an allocation of the C library that
 * has pages of its own (glibc's malloc: 16 bytes before it, the lowest bits of whose size are flags, 2 for mapped).
 * A page that holds data of the driver must not be closed: the GPU's progress may depend on them. */
static bool has_own_pages(const download *it)
{
    enum { HEADER = 16, MAPPED = 2, FLAGS = 7 };
    uint64_t end = it->to + it->bytes;
    if (it->to % PAGE == 0 && end % PAGE == 0)
        return true;
    if (it->to % PAGE != HEADER)
        return false;
    uint64_t size = *(const uint64_t *)(it->to - sizeof(uint64_t));
    return (size & FLAGS) == MAPPED && (size & ~(uint64_t)FLAGS) % PAGE == 0 &&
           it->to - HEADER + (size & ~(uint64_t)FLAGS) >= page_after(end);
}

bool ffm_downloads_begin(download *it)
{
    if (__atomic_load_n(&downloads.off, __ATOMIC_ACQUIRE) || ffm_raw_calls_anywhere())
        return false;
    ffm_downloads_deliver(it->to, it->to + it->bytes, &ffm_counters->deliveries_called);
    if (!(it->direct && ffm_blocks_own_pages(it->to)) &&
        !(ffm_maps_private(page_of(it->to), page_after(it->to + it->bytes)) && has_own_pages(it)))
        return false;
    lock();
    bool open = ffm_downloads_late < LATE && open_watch();
    unlock();
    size_t staged = it->direct ? 0 : (it->bytes + WORD_ROOM - 1) / WORD_ROOM * WORD_ROOM;
    if (!open || !ffm_staging_take(staged + WORD_ROOM, &it->piece))
        return false;
    it->into = it->direct ? (void *)it->to : it->piece.memory;
    it->done = (uint32_t *)((char *)it->piece.memory + staged);
    *it->done = 0;
    return true;
}

void ffm_downloads_close(const download *it)
{
    lock();
    change(); /* before the page closes: whoever faults on it waits until it is known why (try_again) */
    bool closed = !downloads.off && ffm_downloads_late < LATE && protect(it, it->source ? PROT_READ : PROT_NONE);
    if (closed) {
        downloads.late[ffm_downloads_late] = *it;
        __atomic_store_n(&ffm_downloads_late, ffm_downloads_late + 1, __ATOMIC_RELEASE);
    }
    change();
    unlock();
    if (closed)
        return;
    if (await(it) && !it->direct)
        memcpy((void *)it->to, it->into, it->bytes);
    ffm_staging_release(&it->piece);
}

bool ffm_downloads_close_transfer(uint64_t start, size_t bytes, bool source, uint64_t stream)
{
    download it = {.to = start, .bytes = bytes, .direct = true, .source = source, .stream = stream};
    if (!ffm_downloads_begin(&it))
        return false;
    if (ffm_driver.set_words((uint64_t)it.done, 1, 1, stream) != FFM_CUDA_SUCCESS) {
        ffm_staging_release(&it.piece);
        return false;
    }
    ffm_downloads_close(&it);
    return true;
}

void ffm_downloads_after_fork(void)
{
    downloads.locked = false;
    ffm_downloads_late = 0;
    if (downloads.opened) { /* this process's own memory */
        close(downloads.memory);
        downloads.memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
    }
}
