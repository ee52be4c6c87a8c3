#include "late.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "counters.h"
#include "driver.h"
#include "kernel.h"
#include "signal_mask.h"
#include "staging.h"
#include "state.h"
#include "trials.h"
#include "uses.h"

enum { LATE = 256 };

/* Marks of downloads to be delivered. */
enum { CHOSEN = 1, UNWRITTEN };

/* After this long it is worth asking the driver whether the copy can still complete. */
static const int64_t patience_ns = 1000000000;

/* A sleep takes at least about 70 us, so a wait for something almost done first yields the core to others. Not for
 * long, because the GPU's own threads may need it. */
static const int64_t before_sleeping_ns = 50000;

typedef ffm_download_late download;

static struct {
    bool locked;
    bool off;
    uint32_t forks;       /* under way */
    uint32_t waiting;     /* threads that wait for the GPU to deliver */
    int memory;           /* /proc/self/mem: can write closed pages */
    struct stat identity; /* of that file */
    uint32_t version;     /* odd while `list` changes */
    download list[LATE];
} late = {.memory = -1};

uint32_t ffm_downloads_late;

/* Of the lock's holder. */
static __thread uint64_t signals_before __attribute__((tls_model("initial-exec")));

/* The lock is also taken in a signal handler. Nothing under it may touch a closed page or wait for the GPU, which may
 * be waiting for another thread that is about to touch one. */
static void lock(void)
{
    signals_before = ffm_signals_lock(&late.locked);
}

static void unlock(void)
{
    ffm_signals_unlock(&late.locked, signals_before);
}

static uint64_t first_page(const download *of)
{
    return ffm_page_of(of->to);
}

static uint64_t last_page(const download *of)
{
    return ffm_page_after(of->to + of->bytes);
}

static bool protect(const download *of, int protection)
{
    uint64_t first = first_page(of);
    return ffm_kernel(SYS_mprotect, first, last_page(of) - first, (uint64_t)protection, 0) == 0;
}

static bool is_done(const download *it)
{
    return __atomic_load_n(it->done, __ATOMIC_ACQUIRE) == 1;
}

/* Not at the lowest number that is free, which a program may expect for its own file. */
static bool open_memory(void)
{
    enum { FIRST = 512 };
    const int lowest = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
    const int far = lowest < 0 ? -1 : fcntl(lowest, F_DUPFD_CLOEXEC, FIRST);
    late.memory = far < 0 ? lowest : far;
    if (far >= 0)
        close(lowest);
    return late.memory >= 0 && fstat(late.memory, &late.identity) == 0;
}

/* A program may close what it does not know, and open a file of its own in that place. */
static bool memory_is_open(void)
{
    struct stat status;
    return fstat(late.memory, &status) == 0 && status.st_dev == late.identity.st_dev &&
           status.st_ino == late.identity.st_ino;
}

bool ffm_late_open(void)
{
    if (!open_memory())
        return false;
    /* Not every kernel allows it, so try it on a page. */
    void *page = mmap(NULL, FFM_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return false;
    const char one = 1;
    bool can = ffm_kernel(SYS_pwrite64, (uint64_t)late.memory, (uint64_t)&one, 1, (uint64_t)page) == 1;
    munmap(page, FFM_PAGE);
    return can;
}

void ffm_late_off(void)
{
    __atomic_store_n(&late.off, true, __ATOMIC_RELEASE);
}

bool ffm_late_is_off(void)
{
    return __atomic_load_n(&late.off, __ATOMIC_ACQUIRE);
}

bool ffm_late_has_room(void)
{
    return __atomic_load_n(&ffm_downloads_late, __ATOMIC_ACQUIRE) < LATE;
}

bool ffm_late_busy(void)
{
    return ffm_downloads_pending() || __atomic_load_n(&late.version, __ATOMIC_ACQUIRE) % 2 != 0;
}

uint32_t ffm_late_version(void)
{
    return __atomic_load_n(&late.version, __ATOMIC_ACQUIRE);
}

/* Give the GPU time, without calling the driver, because the thread may be inside it; the driver is asked only if the
 * copy takes unusually long. False if the GPU will never complete it: the program will learn of the error from its next
 * call. */
static bool pause_since(int64_t *began_ns)
{
    const struct timespec pause = {0, 20000};
    const int64_t waited_ns = (int64_t)ffm_now() - *began_ns;
    if (waited_ns < before_sleeping_ns)
        ffm_kernel(SYS_sched_yield, 0, 0, 0, 0);
    else
        ffm_kernel(SYS_nanosleep, (uint64_t)&pause, 0, 0, 0);
    if (waited_ns < patience_ns)
        return true;
    *began_ns += waited_ns;
    return !ffm_context_failed();
}

bool ffm_late_await(const download *it)
{
    int64_t began_ns = (int64_t)ffm_now();
    while (!is_done(it))
        if (!pause_since(&began_ns))
            return false;
    return true;
}

static bool on_pages(const download *it, const download *of)
{
    return first_page(it) < last_page(of) && first_page(of) < last_page(it);
}

static bool in_the_way(const download *earlier, const download *of)
{
    if (of->source)
        return !earlier->source && on_pages(earlier, of);
    return earlier->to < of->to + of->bytes && of->to < earlier->to + earlier->bytes;
}

/* Change a place of the list. Locked; any() reads three of its members without the lock. */
static void put(uint32_t place, const download *it)
{
    download *at = &late.list[place];
    __atomic_store_n(&at->to, it->to, __ATOMIC_RELAXED);
    __atomic_store_n(&at->bytes, it->bytes, __ATOMIC_RELAXED);
    __atomic_store_n(&at->source, it->source, __ATOMIC_RELAXED);
    at->direct = it->direct;
    at->piece = it->piece;
    at->into = it->into;
    at->done = it->done;
    at->stream = it->stream;
    at->unit = it->unit;
}

/* Whether some download is related to another in the given way. Without the lock and its system calls, because this is
 * called often. */
static bool any(bool (*related)(const download *, const download *), const download *to)
{
    while (true) {
        uint32_t version = __atomic_load_n(&late.version, __ATOMIC_ACQUIRE);
        uint32_t count = __atomic_load_n(&ffm_downloads_late, __ATOMIC_ACQUIRE);
        bool found = false;
        for (uint32_t i = 0; i < count && i < LATE && !found; i++) {
            download seen = {.to = __atomic_load_n(&late.list[i].to, __ATOMIC_RELAXED),
                             .bytes = __atomic_load_n(&late.list[i].bytes, __ATOMIC_RELAXED),
                             .source = __atomic_load_n(&late.list[i].source, __ATOMIC_RELAXED)};
            found = related(&seen, to);
        }
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (version % 2 == 0 && version == __atomic_load_n(&late.version, __ATOMIC_RELAXED))
            return found;
        ffm_kernel(SYS_sched_yield, 0, 0, 0,
                   0); /* a change of the list lasts as long as a system call, so do not spin */
    }
}

bool ffm_late_is_in_the_way_of(const download *it)
{
    return ffm_downloads_pending() && any(in_the_way, it);
}

/* Call before and after each change of the list. Locked. */
static void change(void)
{
    __atomic_add_fetch(&late.version, 1, __ATOMIC_ACQ_REL);
}

bool ffm_late_add(const download *it)
{
    lock();
    change(); /* before the page closes: a thread that faults on it waits until the reason is known (touches.c) */
    /* A child could not deliver what is deferred now, and waiting threads should not get more to wait for. */
    bool may = !ffm_late_is_off() && late.forks == 0 && late.waiting == 0 && ffm_downloads_late < LATE &&
               !ffm_uses_any(first_page(it), last_page(it));
    bool closed = may && protect(it, it->source ? PROT_READ : PROT_NONE);
    if (closed) {
        put(ffm_downloads_late, it);
        __atomic_store_n(&ffm_downloads_late, ffm_downloads_late + 1, __ATOMIC_RELEASE);
    }
    change();
    unlock();
    return closed;
}

/* Write the destination while its pages are closed, so that no thread sees it half done. False if that fails. */
static bool write_closed(const download *it)
{
    if (!memory_is_open() && !open_memory())
        return false;
    for (size_t written = 0; written < it->bytes;) {
        int64_t count = ffm_kernel(SYS_pwrite64, (uint64_t)late.memory, (uint64_t)it->into + written,
                                   it->bytes - written, it->to + written);
        if (count <= 0)
            return false;
        written += (size_t)count;
    }
    return true;
}

/* Mark everything on some pages, and everything on pages shared with those: only together can they be opened.
 * Locked. */
static void choose(uint64_t first, uint64_t last, uint8_t *chosen)
{
    for (bool more = true; more;) {
        more = false;
        for (uint32_t i = 0; i < ffm_downloads_late; i++) {
            const download *it = &late.list[i];
            if (chosen[i] || first_page(it) >= last || last_page(it) <= first)
                continue;
            chosen[i] = CHOSEN;
            more = true;
            if (first_page(it) < first)
                first = first_page(it);
            if (last_page(it) > last)
                last = last_page(it);
        }
    }
}

/* How many of the chosen ones the GPU has not finished. Locked. */
static uint32_t under_way(const uint8_t *chosen)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < ffm_downloads_late; i++)
        count += chosen[i] && !is_done(&late.list[i]);
    return count;
}

/* Count the time since then as spent on a download; NULL: on none. */
static void charge(const download *it, uint64_t *since_ns)
{
    uint64_t now_ns = ffm_now();
    if (it != NULL)
        ffm_trial_spent(it->unit, now_ns - *since_ns);
    *since_ns = now_ns;
}

/* Deliver what is chosen, which includes everything on its pages; return how many. Locked. */
static uint32_t deliver_chosen(uint8_t *chosen)
{
    uint32_t count = 0;
    uint64_t began_ns = ffm_now();
    for (uint32_t i = 0; i < ffm_downloads_late; i++) {
        if (chosen[i] && is_done(&late.list[i]) && !late.list[i].direct && !write_closed(&late.list[i]))
            chosen[i] = UNWRITTEN;
        charge(chosen[i] ? &late.list[i] : NULL, &began_ns);
    }
    change();
    for (uint32_t i = ffm_downloads_late; i > 0; i--) {
        if (!chosen[i - 1])
            continue;
        /* If the pages cannot even be opened, nothing is mapped there any more. */
        if (protect(&late.list[i - 1], PROT_READ | PROT_WRITE) && chosen[i - 1] == UNWRITTEN)
            memcpy((void *)late.list[i - 1].to, late.list[i - 1].into, late.list[i - 1].bytes);
        ffm_staging_release(&late.list[i - 1].piece);
        charge(&late.list[i - 1], &began_ns);
        put(i - 1, &late.list[ffm_downloads_late - 1]);
        chosen[i - 1] = chosen[ffm_downloads_late - 1];
        __atomic_store_n(&ffm_downloads_late, ffm_downloads_late - 1, __ATOMIC_RELEASE);
        FFM_COUNT(deliveries);
        count++;
    }
    change();
    return count;
}

bool ffm_late_deliver(uint64_t first, uint64_t last, uint64_t *why)
{
    static uint8_t chosen[LATE]; /* locked */
    const download pages = {.to = first, .bytes = last - first};
    if (!any(on_pages, &pages))
        return false;
    int error = errno;
    int64_t began_ns = (int64_t)ffm_now();
    bool waiting = false, failed = false;
    uint32_t count;
    lock();
    while (true) {
        memset(chosen, 0, sizeof chosen);
        choose(first, last, chosen);
        count = failed ? 0 : under_way(chosen);
        if (count == 0)
            break;
        if (!waiting) {
            late.waiting++;
            __atomic_fetch_add(&ffm_counters->deliveries_awaited, count, __ATOMIC_RELAXED);
        }
        waiting = true;
        unlock();
        failed = !pause_since(&began_ns);
        lock();
    }
    late.waiting -= waiting;
    count = deliver_chosen(chosen);
    unlock();
    errno = error;
    __atomic_fetch_add(why, count, __ATOMIC_RELAXED);
    return count > 0;
}

void ffm_late_settle(void)
{
    static uint8_t ready[LATE], looked_at[LATE], together[LATE]; /* locked */
    if (!ffm_downloads_pending())
        return;
    lock();
    memset(ready, 0, sizeof ready);
    memset(looked_at, 0, sizeof looked_at);
    bool any_ready = false;
    for (uint32_t i = 0; i < ffm_downloads_late; i++) {
        if (looked_at[i])
            continue;
        memset(together, 0, sizeof together);
        choose(first_page(&late.list[i]), last_page(&late.list[i]), together);
        bool done = true;
        for (uint32_t j = i; j < ffm_downloads_late; j++)
            done = done && (!together[j] || is_done(&late.list[j]));
        for (uint32_t j = i; j < ffm_downloads_late; j++) {
            looked_at[j] |= together[j];
            ready[j] |= done && together[j];
        }
        any_ready = any_ready || done;
    }
    if (any_ready)
        deliver_chosen(ready);
    unlock();
}

void ffm_late_fork(bool begins)
{
    lock();
    late.forks += begins ? 1 : -1u;
    unlock();
}

void ffm_late_forget(void)
{
    late.locked = false;
    late.forks = late.waiting = 0;
    late.version = 0; /* another thread of the parent may have been changing the list */
    ffm_downloads_late = 0;
    if (late.memory < 0)
        return;
    if (memory_is_open())
        close(late.memory); /* which is the parent's memory */
    if (!ffm_late_open())
        ffm_late_off();
}
