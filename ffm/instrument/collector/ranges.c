#include "ranges.h"

#include <sched.h>
#include <stddef.h>
#include <sys/mman.h>

enum { CAPACITY = 1 << 16, PAGE = 4096 };

static struct {
    bool locked;
    uint32_t count;
    ffm_range *ranges;
} watched;

/* A mutex may not be taken in a signal handler. Nothing under the lock touches a watched page. */
static void lock(void)
{
    while (__atomic_test_and_set(&watched.locked, __ATOMIC_ACQUIRE))
        sched_yield();
}

static void unlock(void)
{
    __atomic_clear(&watched.locked, __ATOMIC_RELEASE);
}

static uint64_t page_of(uint64_t address)
{
    return address & ~(uint64_t)(PAGE - 1);
}

static uint64_t page_after(uint64_t address)
{
    return page_of(address + PAGE - 1);
}

static int protection(const ffm_range *range)
{
    return range->writes_only ? PROT_READ : PROT_NONE;
}

static bool protect(uint64_t start, uint64_t end, int wanted)
{
    return mprotect((void *)page_of(start), page_after(end) - page_of(start), wanted) == 0;
}

/* Pages of [start, end) as the ranges left want them: the strictest wins. */
static void restore(uint64_t start, uint64_t end)
{
    uint64_t first = page_of(start), last = page_after(end);
    protect(first, last, PROT_READ | PROT_WRITE);
    for (int strict = 0; strict < 2; strict++) {
        for (uint32_t i = 0; i < watched.count; i++) {
            const ffm_range *other = &watched.ranges[i];
            if (other->writes_only == (strict == 1))
                continue;
            uint64_t from = page_of(other->start) > first ? page_of(other->start) : first;
            uint64_t to = page_after(other->end) < last ? page_after(other->end) : last;
            if (from < to)
                protect(from, to, protection(other));
        }
    }
}

bool ffm_ranges_add(const ffm_range *range)
{
    lock();
    bool done = false;
    if (watched.ranges == NULL) {
        void *pages =
            mmap(NULL, CAPACITY * sizeof *watched.ranges, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        watched.ranges = pages == MAP_FAILED ? NULL : pages;
    }
    if (watched.ranges != NULL && watched.count < CAPACITY) {
        watched.ranges[watched.count++] = *range;
        done = true;
        if (!protect(range->start, range->end, protection(range))) {
            watched.count--;
            done = false;
        }
        restore(range->start, range->end);
    }
    unlock();
    return done;
}

bool ffm_ranges_take(uint64_t start, uint64_t end, bool writing, ffm_range *taken)
{
    bool found = false;
    lock();
    for (uint32_t i = 0; i < watched.count && !found; i++) {
        const ffm_range *at = &watched.ranges[i];
        if (at->start < end && start < at->end && (writing || !at->writes_only)) {
            *taken = *at;
            watched.ranges[i] = watched.ranges[--watched.count];
            restore(taken->start, taken->end);
            found = true;
        }
    }
    unlock();
    return found;
}

bool ffm_ranges_take_same_source(const ffm_range *range, ffm_range *taken)
{
    bool found = false;
    lock();
    for (uint32_t i = 0; i < watched.count && !found; i++) {
        const ffm_range *at = &watched.ranges[i];
        if (at->writes_only && at->start == range->start && at->end == range->end && at->stream == range->stream) {
            *taken = *at;
            watched.ranges[i] = watched.ranges[--watched.count];
            found = true;
        }
    }
    unlock();
    return found;
}

bool ffm_ranges_any(void)
{
    return __atomic_load_n(&watched.count, __ATOMIC_RELAXED) != 0;
}

bool ffm_ranges_on_page(uint64_t page)
{
    bool found = false;
    lock();
    for (uint32_t i = 0; i < watched.count && !found; i++)
        found = page_of(watched.ranges[i].start) <= page && page < page_after(watched.ranges[i].end);
    unlock();
    return found;
}

void ffm_ranges_open_page(uint64_t page)
{
    protect(page, page + PAGE, PROT_READ | PROT_WRITE);
}

void ffm_ranges_close_page(uint64_t page)
{
    lock();
    restore(page, page + PAGE);
    unlock();
}

void ffm_ranges_clear(void)
{
    watched.locked = false;
    while (watched.count > 0) {
        ffm_range last = watched.ranges[--watched.count];
        protect(last.start, last.end, PROT_READ | PROT_WRITE);
    }
}
