#include "aside.h"

#include "accesses.h"
#include "clock.h"
#include "ranges.h"
#include "records.h"
#include "threads.h"
#include "traced.h"

enum { ASIDE = 16 };
enum { BRIEF = 50000 }; /* nanoseconds; a system call that does not sleep takes less */

/* Ranges are identified by their address, because their indices change. A range can be cut meanwhile; its pieces are
 * within. */
static __thread struct {
    uint32_t count;
    uint64_t since;
    bool in_driver; /* the driver's system calls must not protect the pages again */
    struct {
        uint64_t operation, start, end;
        uint32_t thread;
    } ranges[ASIDE];
} aside __attribute__((tls_model("initial-exec")));

static void set(uint64_t start, uint64_t end, bool writing)
{
    if (ffm_trace_on())
        return; /* no page is protected */
    for (uint32_t i = ffm_ranges_count(); i > 0; i--) {
        ffm_range *range = ffm_ranges_at(i - 1);
        if (!ffm_range_shares_page(range, start, end) || (!writing && range->writes_only))
            continue;
        if (aside.count == ASIDE) {
            ffm_access_lost(i - 1, ffm_now());
            continue;
        }
        if (aside.count == 0)
            aside.since = ffm_now();
        range->alone = ffm_threads_alone();
        aside.ranges[aside.count].operation = range->operation;
        aside.ranges[aside.count].start = range->start;
        aside.ranges[aside.count].end = range->end;
        aside.ranges[aside.count++].thread = range->thread;
        ffm_ranges_disarm(range, FFM_RANGE_OPEN);
    }
}

void ffm_aside_system_call(uint64_t start, uint64_t bytes, bool writing)
{
    if (bytes == 0 || start == 0 || !ffm_ranges_overlap(start, start + bytes))
        return;
    ffm_ranges_lock();
    ffm_access_unseen(start, start + bytes, writing, FFM_ACCESS_SYSTEM_CALL, 0);
    set(start, start + bytes, writing);
    ffm_ranges_unlock();
}

void ffm_aside(uint64_t start, uint64_t end)
{
    if (!ffm_ranges_overlap(start, end))
        return;
    ffm_ranges_lock();
    set(start, end, false);
    ffm_ranges_unlock();
}

void ffm_aside_driver(uint64_t start, uint64_t end)
{
    if (!ffm_ranges_overlap(start, end))
        return;
    ffm_ranges_lock();
    set(start, end, true);
    ffm_ranges_unlock();
    aside.in_driver = true;
}

/* Whether another thread had time to touch what was open. The driver's copies take time; system calls only if they
 * sleep. */
static bool is_missed(const ffm_range *range, bool of_driver, bool brief)
{
    return !ffm_threads_alone_since(range->alone) && (!brief || (of_driver && range->alone != 0));
}

static void over(bool of_driver)
{
    if (aside.count == 0)
        return;
    const bool brief = ffm_now() - aside.since <= BRIEF;
    ffm_ranges_lock();
    for (; aside.count > 0; aside.count--) {
        for (uint32_t i = ffm_ranges_count(); i > 0; i--) {
            ffm_range *range = ffm_ranges_at(i - 1);
            if (range->state != FFM_RANGE_OPEN || range->operation != aside.ranges[aside.count - 1].operation ||
                range->thread != aside.ranges[aside.count - 1].thread ||
                range->start < aside.ranges[aside.count - 1].start || range->end > aside.ranges[aside.count - 1].end)
                continue;
            if (is_missed(range, of_driver, brief) || !ffm_ranges_arm(range))
                ffm_access_lost(i - 1, aside.since);
        }
    }
    ffm_ranges_unlock();
}

void ffm_aside_driver_over(void)
{
    if (!aside.in_driver)
        return;
    aside.in_driver = false;
    over(true);
}

void ffm_aside_over(void)
{
    if (!aside.in_driver)
        over(false);
}
