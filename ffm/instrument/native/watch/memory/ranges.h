/* The host ranges that are watched, and the protection of their pages. Everything here happens under the lock, and is
 * safe in signal handlers. */
#ifndef FFM_RANGES_H
#define FFM_RANGES_H

#include <stdbool.h>
#include <stdint.h>

#include "boxes.h"
#include "keys.h"

enum { FFM_RANGES_PAGE = 4096 };

/* A range is protected from the end of a wait that may cover its work until it is touched. Until a wait is known to
 * have covered it, the next such wait protects it again. */
typedef enum {
    FFM_RANGE_PENDING, /* its work may be in flight: an access now relies on no wait */
    FFM_RANGE_ARMED,   /* protected */
    FFM_RANGE_OPEN,    /* would be armed, but a system call is working next to it */
    FFM_RANGE_DORMANT, /* was touched; another thread's wait arms it again */
    FFM_RANGE_RESTING, /* was touched; another thread that wakes arms it again (resting.h) */
    FFM_RANGE_KEYED    /* was touched; protected against all threads but one (keys.h) */
} ffm_range_state;

typedef struct {
    ffm_box box;
    uint64_t start, end; /* of the box */
    uint64_t operation;  /* of the transfer or launch, within its thread */
    uint32_t thread;
    uint32_t page; /* bytes; huge pages from a pool are protected as a whole */
    uint32_t context;
    uint64_t stream;    /* ffm_stream_key */
    uint64_t issued;    /* when the operation began */
    uint64_t armed;     /* when the program continued after the wait that armed it */
    uint64_t waited;    /* one bit for each thread whose wait has covered it */
    uint64_t waits;     /* how many waits and records of events had ended when it was issued */
    uint64_t done;      /* the same number at each access that found it done */
    uint64_t touched;   /* one bit for each thread that has touched it since its last wait that covered it */
    uint64_t alone;     /* what ffm_threads_alone was when a system call or the driver opened it */
    uint32_t covers;    /* how many waits have covered it */
    uint32_t repeats;   /* touches by threads that had touched it before */
    uint64_t inherited; /* when a fork copied it: the operation is an ancestor's; otherwise 0 */
    uint32_t forked_by; /* the thread of the ancestor that forked then; 0 if it had never called the driver */
    ffm_range_state state;
    bool writes_only; /* the CPU may still read it: source of an upload in flight */
    bool covered;     /* a wait is known to have covered its work */
    bool launch;      /* a block that a kernel may have written, not the memory of a transfer */
    bool forking;     /* open while a child is forked, to be armed again */
    bool download;    /* from device memory; the fields below say how much of it is touched, see extents.h */
    bool followed;    /* all of it is armed, or recorded as touched */
    bool rest;        /* the remainder of a download that was touched: its uses no longer count */
    uint32_t granule; /* bytes that a touch opens; 0 if its extent is not watched */
    uint32_t key;     /* of the thread that may use it, while it is keyed */
} ffm_range;

/* Whether its pages are protected against the calling thread. */
static inline bool ffm_range_is_closed(const ffm_range *range)
{
    return range->state == FFM_RANGE_ARMED || (range->state == FFM_RANGE_KEYED && !ffm_keys_are_mine(range->key));
}

/* Hold the lock around everything below. Outside signal handlers, signals are blocked: a handler of the program could
 * touch a watched page. */
void ffm_ranges_lock(void);
void ffm_ranges_unlock(void);
void ffm_ranges_lock_in_handler(void);
void ffm_ranges_unlock_in_handler(void);

/* Whether the calling thread holds the lock. */
bool ffm_ranges_held(void);

/* The number of ranges; may be read without the lock, to see whether there is anything to do. */
uint32_t ffm_ranges_count(void);

/* The number of those that are the remainder of a download. Locked. */
uint32_t ffm_ranges_rests(void);

/* The number of those that are resting. Locked. */
uint32_t ffm_ranges_resting(void);

/* The range at an index from 0. */
ffm_range *ffm_ranges_at(uint32_t place);

enum { FFM_NEARBY = 32 };

/* The places of some ranges, of which the last comes first. */
typedef struct {
    uint32_t count;
    bool all; /* of all ranges */
    uint32_t places[FFM_NEARBY];
} ffm_nearby;

/* All ranges that may have a page in common with [start, end), and possibly others. Each can be removed, or replaced by
 * pieces of it, when it is its turn. */
ffm_nearby ffm_ranges_nearby(uint64_t start, uint64_t end);

static inline uint32_t ffm_nearby_place(const ffm_nearby *nearby, uint32_t turn)
{
    return nearby->all ? nearby->count - 1 - turn : nearby->places[turn];
}

/* Add a range, not yet protected. Returns false if there is no room. */
bool ffm_ranges_add(const ffm_range *range);

/* Add a piece of an armed range, which is protected. */
bool ffm_ranges_add_armed(const ffm_range *range);

/* Remove a range; the last one moves to its index. */
void ffm_ranges_remove(uint32_t place);

/* Call a function when the set of armed ranges has changed, under their lock, and protect no page. */
void ffm_ranges_mark_with(void (*mark)(void));

/* Open all protected ranges. Until this is reverted, ranges that would be armed are left open as well. They are marked
 * `forking`.
 */
void ffm_ranges_hold_open(bool hold);

/* What a thread has done to a range may matter to the next wait (unsettled.h). */
void ffm_ranges_unsettle(const ffm_range *range);

/* Protect a range, or open its pages. False if its pages cannot be protected. */
bool ffm_ranges_arm(ffm_range *range);
void ffm_ranges_disarm(ffm_range *range, ffm_range_state next);

/* What was to arrive in [start, end), or to be read from there, is over or gone: remove it from all ranges, which may
 * end a range or split it in two. */
void ffm_ranges_cut(uint64_t start, uint64_t end);

/* The same for one range, at an index. */
void ffm_ranges_cut_at(uint32_t place, uint64_t start, uint64_t end);

/* And for a box. If it has several rows, only ranges of exactly these rows end. */
void ffm_ranges_cut_box(const ffm_box *box);

/* The following may be asked without the lock. They never miss a range that is there all the time; while another thread
 * changes the table, the answer is yes. */

/* Whether [start, end) contains pages of an armed range. */
bool ffm_ranges_overlap(uint64_t start, uint64_t end);

/* Whether some of these pages cannot even be read. */
bool ffm_ranges_hide(uint64_t start, uint64_t end);

/* Whether [start, end) contains bytes of a range in any state. */
bool ffm_ranges_reach(uint64_t start, uint64_t end);

/* Whether a range ends behind an address. */
bool ffm_ranges_end_behind(uint64_t address);

typedef struct {
    uint64_t start;
    uint32_t bytes;
} ffm_page;

/* Whether a range that is closed to the calling thread has a page in common with [start, end). */
bool ffm_range_shares_page(const ffm_range *range, uint64_t start, uint64_t end);

/* Whether the range is closed to an access to [start, end) by the calling thread. */
static inline bool ffm_range_forbids(const ffm_range *range, uint64_t start, uint64_t end, bool writing)
{
    return ffm_range_is_closed(range) && (writing || !range->writes_only) && ffm_box_touches(&range->box, start, end);
}

/* Take the lock in a forked child, where a thread that no longer exists may have held it. */
void ffm_ranges_lock_after_fork(void);

/* How often the protection of pages has changed. Locked. */
uint64_t ffm_ranges_changes(void);

/* Open the page around an address for one instruction. False, and the page then has no bytes, if no armed range is on
 * it or the kernel refuses. Closing protects it as the ranges armed at that time need. */
bool ffm_ranges_open_page(uint64_t address, ffm_page *page);
void ffm_ranges_close_page(const ffm_page *page);

#endif
