/* A host range that is watched. */
#ifndef FFM_RANGE_H
#define FFM_RANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "boxes.h"
#include "keys.h"

enum { FFM_RANGES_PAGE = 4096 };

/* A page, or some in a row. */
typedef struct {
    uint64_t start, bytes;
} ffm_page;

/* A range is protected from the end of a wait that may cover its work until it is touched. Until a wait is known to
 * have covered it, the next such wait protects it again. */
typedef enum {
    FFM_RANGE_PENDING,  /* its work may be in flight: an access now relies on no wait */
    FFM_RANGE_ARMED,    /* protected */
    FFM_RANGE_PREPARED, /* pending, but protected, as an equal range was before it, or ahead: an access opens it */
    FFM_RANGE_OPEN,     /* would be armed, but a system call is working next to it */
    FFM_RANGE_DORMANT,  /* was touched; another thread's wait arms it again */
    FFM_RANGE_RESTING,  /* was touched; another thread that wakes arms it again (resting.h) */
    FFM_RANGE_KEYED     /* was touched; protected against all threads but one (keys.h) */
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
    uint64_t done;      /* the bits that `waited` had at some access: waits of these threads arm it no more */
    uint64_t touched;   /* one bit for each thread that has touched it since its last wait that covered it */
    uint64_t alone;     /* what ffm_threads_alone was when a system call or the driver opened it */
    uint32_t covers;    /* how many waits have covered it */
    uint32_t repeats;   /* touches by threads that had touched it before */
    uint32_t habit;     /* which results it belongs to (habits.h); 0 if they have none */
    uint32_t waited_at; /* the stack of the first wait that has covered it, */
    uint32_t waiter;    /* and the number of the thread that waited */
    uint64_t inherited; /* when a fork copied it: the operation is an ancestor's; otherwise 0 */
    uint32_t forked_by; /* the thread of the ancestor that forked then; 0 if it had never called the driver */
    ffm_range_state state;
    bool writes_only; /* the CPU may still read it: source of an upload in flight */
    bool covered;     /* a wait is known to have covered its work */
    bool launch;      /* a block that a kernel may have written, not the memory of a transfer */
    bool unchanged;   /* armed without a break since addresses were last looked for in it (stored_addresses.h) */
    bool forking;     /* open while a child is forked, to be armed again */
    bool download;    /* from device memory; the fields below say how much of it is touched, see extents.h */
    bool in_flight;   /* the call did not wait for it */
    bool intact;      /* nobody could touch it unrecorded since its call */
    bool followed;    /* all of it is armed, or recorded as touched */
    bool spared;      /* by its habit, until its first wait */
    bool joins;       /* it is to count as used with others (used_together.h) */
    bool told;        /* whether the habit has been kept is known */
    bool probe;       /* a page of a block that counts as used, to see whether its habit is kept */
    bool rest;        /* the remainder of a download that was touched: its uses no longer count */
    uint32_t kept;    /* number, plus 1, of the thread whose call overwrites it, and keeps its pages closed; or 0 */
    uint32_t granule; /* bytes that a touch opens; 0 if its extent is not watched */
    uint32_t key;     /* of the thread that may use it, while it is keyed */
} ffm_range;

/* The whole pages that it lies on. */
static inline uint64_t ffm_range_first_page(const ffm_range *range)
{
    return range->start & ~(uint64_t)(range->page - 1);
}

static inline uint64_t ffm_range_last_page(const ffm_range *range)
{
    return (range->end + range->page - 1) & ~(uint64_t)(range->page - 1);
}

/* Whether its pages are protected, at least against some threads. */
static inline bool ffm_range_is_protected(const ffm_range *range)
{
    return range->state == FFM_RANGE_ARMED || range->state == FFM_RANGE_PREPARED || range->state == FFM_RANGE_KEYED;
}

/* Whether its pages are protected against the calling thread. */
static inline bool ffm_range_is_closed(const ffm_range *range)
{
    return ffm_range_is_protected(range) && !(range->state == FFM_RANGE_KEYED && ffm_keys_are_mine(range->key));
}

/* Whether the range is closed to an access to [start, end) by the calling thread. */
static inline bool ffm_range_forbids(const ffm_range *range, uint64_t start, uint64_t end, bool writing)
{
    return ffm_range_is_closed(range) && (writing || !range->writes_only) && ffm_box_touches(&range->box, start, end);
}

/* Whether the range is closed to the calling thread and shares a page with [start, end). */
static inline bool ffm_range_shares_page(const ffm_range *range, uint64_t start, uint64_t end)
{
    return ffm_range_is_closed(range) && ffm_range_first_page(range) < end && start < ffm_range_last_page(range);
}

enum { FFM_NEARBY = 32 };

/* The places of some ranges, the last one first. */
typedef struct {
    uint32_t count;
    bool all; /* of all ranges */
    uint32_t places[FFM_NEARBY];
} ffm_nearby;

static inline uint32_t ffm_nearby_place(const ffm_nearby *nearby, uint32_t turn)
{
    return nearby->all ? nearby->count - 1 - turn : nearby->places[turn];
}

#endif
