#include "aside.h"

#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "accesses.h"
#include "calls_in_progress.h"
#include "clock.h"
#include "giving_way.h"
#include "kernel.h"
#include "keys.h"
#include "questions.h"
#include "ranges.h"
#include "records.h"
#include "threads.h"
#include "traced.h"

enum { ASIDE = 200, ROOM = 8192 };
enum { BRIEF = 50000 }; /* nanoseconds; a system call that does not sleep takes less */

/* What a thread has set aside. Ranges are identified by their address, because their indices change. A range can be cut
 * meanwhile; its pieces lie within the noted address range. */
typedef struct list {
    uint64_t since;
    uint32_t count;
    bool interrupted; /* by a handler of the program, which may use what is open */
    struct {
        uint64_t operation, start, end;
        uint32_t thread;
        bool unchanged; /* what the range's was, if it is opened for reading only */
    } ranges[ASIDE];
    struct list *next;
} list;

static list *spare; /* used by no thread; locked */

/* Small: a process has room for few thread-local variables of libraries that it loads late. */
static __thread struct {
    list *list;     /* NULL if nothing is set aside */
    bool in_driver; /* the driver's system calls must not protect the pages again */
} aside __attribute__((tls_model("initial-exec")));

/* Locked. */
static void make_spare(void)
{
    const uint64_t arguments[6] = {0, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, UINT64_MAX, 0};
    const int64_t room = ffm_kernel_call(SYS_mmap, arguments);
    list *made = (list *)room; // NOLINT(performance-no-int-to-ptr)
    for (size_t i = 0; room > 0 && i < ROOM / sizeof *made; i++) {
        made[i].next = spare;
        spare = &made[i];
    }
}

/* The calling thread's list; NULL without memory. Locked. */
static list *list_here(void)
{
    if (aside.list != NULL)
        return aside.list;
    if (spare == NULL)
        make_spare();
    aside.list = spare;
    if (spare != NULL) {
        spare = spare->next;
        aside.list->count = 0;
        aside.list->interrupted = false;
        aside.list->since = ffm_now();
    }
    return aside.list;
}

/* Whether so many results are on the pages that they cannot all be set aside. */
static bool is_crowded(uint64_t start, uint64_t end, bool writing)
{
    uint32_t count = aside.list == NULL ? 0 : aside.list->count;
    const ffm_nearby nearby = ffm_ranges_nearby(start, end);
    for (uint32_t i = 0; i < nearby.count; i++) {
        const ffm_range *range = ffm_ranges_at(ffm_nearby_place(&nearby, i));
        count += (writing || !range->writes_only) && ffm_range_shares_page(range, start, end);
    }
    return count > ASIDE;
}

static void set(uint64_t start, uint64_t end, bool writing)
{
    if (ffm_trace_on() || ffm_keys_admitted())
        return; /* no page is closed */
    if (is_crowded(start, end, writing))
        ffm_access_make_room(start, end, ffm_now());
    ffm_page refused;
    ffm_ranges_gather();
    for (uint32_t i = ffm_ranges_count(); i > 0; i--) {
        ffm_range *range = ffm_ranges_at(i - 1);
        if (!ffm_range_shares_page(range, start, end) || (!writing && range->writes_only))
            continue;
        if (range->state == FFM_RANGE_PREPARED) {
            ffm_ranges_disarm(range, FFM_RANGE_PENDING);
            continue;
        }
        list *own = list_here();
        if (own == NULL || own->count == ASIDE) {
            ffm_access_lost(i - 1, ffm_now());
            continue;
        }
        range->alone = ffm_threads_alone();
        own->ranges[own->count].operation = range->operation;
        own->ranges[own->count].start = range->start;
        own->ranges[own->count].end = range->end;
        own->ranges[own->count].unchanged = range->unchanged && !writing;
        own->ranges[own->count++].thread = range->thread;
        ffm_ranges_disarm(range, FFM_RANGE_OPEN);
    }
    ffm_ranges_gathered(&refused); /* what cannot be opened stays closed, and is stepped over */
}

void ffm_aside_interrupted(void)
{
    if (aside.list != NULL)
        aside.list->interrupted = true;
}

void ffm_aside_system_call(uint64_t start, uint64_t bytes, bool writing)
{
    if (bytes == 0 || start == 0)
        return;
    ffm_call_in_progress_uses(start, start + bytes, writing);
    if (!ffm_ranges_overlap(start, start + bytes))
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

void ffm_aside_driver(uint64_t start, uint64_t end, bool writing)
{
    if (writing ? !ffm_ranges_overlap(start, end) : !ffm_ranges_hide(start, end))
        return;
    if (ffm_keys_admit())
        return;
    ffm_ranges_lock();
    set(start, end, writing);
    ffm_ranges_unlock();
    aside.in_driver = true;
}

/* Whether another thread had time to touch what was open. The driver's copies take time; system calls only if they
 * sleep. With keys, few system calls need an open page. */
static bool is_missed(const ffm_range *range, bool of_driver, bool brief)
{
    if (ffm_threads_alone_since(range->alone))
        return false;
    return !brief || (of_driver && range->alone != 0) || ffm_keys_closed(false) != 0;
}

/* Whether a thread has set a range aside. */
static bool is_on(const list *own, const ffm_range *range, bool *unchanged)
{
    for (uint32_t i = own->count; i > 0; i--)
        if (range->operation == own->ranges[i - 1].operation && range->thread == own->ranges[i - 1].thread &&
            range->start >= own->ranges[i - 1].start && range->end <= own->ranges[i - 1].end) {
            *unchanged = own->ranges[i - 1].unchanged;
            return true;
        }
    return false;
}

/* Arm again what is on a list. Locked. */
static void settle(list *own, bool of_driver, bool brief)
{
    ffm_page refused;
    ffm_ranges_gather();
    for (uint32_t i = ffm_ranges_count(); i > 0; i--) {
        ffm_range *range = ffm_ranges_at(i - 1);
        bool unchanged;
        if (range->state != FFM_RANGE_OPEN || !is_on(own, range, &unchanged))
            continue;
        if (own->interrupted || is_missed(range, of_driver, brief) || !ffm_ranges_arm(range))
            ffm_access_lost(i - 1, own->since);
        else
            range->unchanged = unchanged;
    }
    if (!ffm_ranges_gathered(&refused))
        ffm_access_give_up(&refused, own->since);
    own->count = 0;
}

static void over(bool of_driver)
{
    if (aside.list == NULL)
        return;
    const uint64_t now = ffm_now();
    ffm_ranges_lock();
    list *own = aside.list; /* NULL if a handler of the program came before the lock */
    if (own != NULL) {
        settle(own, of_driver, now - own->since <= BRIEF);
        own->next = spare;
        spare = own;
        aside.list = NULL;
    }
    ffm_ranges_unlock();
}

void ffm_aside_driver_over(void)
{
    ffm_keys_expel();
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
