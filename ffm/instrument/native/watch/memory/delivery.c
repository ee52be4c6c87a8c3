#include "delivery.h"

#include <stddef.h>
#include <string.h>

#include "aside.h"
#include "blocks.h"
#include "closed_memory.h"
#include "keys.h"
#include "new_pages.h"
#include "questions.h"
#include "ranges.h"
#include "thread.h"
#include "traced.h"

/* Up to so many bytes, copying them takes less time than the interrupt (docs/benchmarks/cost.md#watched-memory). */
enum { MOST_BYTES = 128 << 10, PAGE = FFM_RANGES_PAGE };

typedef struct buffer {
    uint64_t address, bytes; /* where the bytes belong */
    bool begun, arrived;
    struct buffer *next;
    char content[];
} buffer;

static buffer *spare; /* used by no thread; locked */

/* The calling thread's; NULL if it has none. */
static buffer *own_buffer(void)
{
    const ffm_thread *thread = ffm_thread_peek();
    return thread == NULL ? NULL : thread->delivery;
}

/* The calling thread's, which is found if it has none; NULL if memory is short. Locked. */
static buffer *find_buffer(void)
{
    ffm_thread *thread = ffm_thread_peek();
    if (thread == NULL)
        return NULL;
    if (thread->delivery != NULL)
        return thread->delivery;
    buffer *found = spare;
    if (found != NULL)
        spare = found->next;
    else
        found = ffm_new_pages(sizeof *found + MOST_BYTES);
    thread->delivery = found;
    return found;
}

bool ffm_delivery_prepare(const ffm_box *box)
{
    const bool plain = box->height == 1 && box->depth == 1 && box->width > 0 && box->width <= MOST_BYTES;
    if (!plain || !ffm_ranges_overlap(box->address, ffm_box_end(box)) || ffm_trace_on() || ffm_keys_closed(false) != 0)
        return false;
    if (ffm_blocks_hold(box->address) || !ffm_blocks_complete() || !ffm_closed_memory_may_write())
        return false;
    buffer *own = find_buffer();
    if (own == NULL)
        return false;
    own->address = box->address;
    own->bytes = box->width;
    own->begun = own->arrived = false;
    return true;
}

/* How far the pages from an address on are closed to all access, as one of the ranges nearby closes them. Huge pages
 * from a pool cannot be written this way. */
static uint64_t closed_until(const ffm_nearby *nearby, uint64_t page)
{
    for (uint32_t i = 0; i < nearby->count; i++) {
        const ffm_range *range = ffm_ranges_at(ffm_nearby_place(nearby, i));
        if (ffm_range_is_closed(range) && !range->writes_only && range->page == PAGE &&
            ffm_range_first_page(range) <= page && page < ffm_range_last_page(range))
            return ffm_range_last_page(range);
    }
    return page;
}

bool ffm_delivery_begin(const ffm_box *box)
{
    const uint64_t end = ffm_box_end(box);
    const ffm_nearby nearby = ffm_ranges_nearby(box->address, end);
    uint64_t page = box->address & ~(uint64_t)(PAGE - 1);
    for (uint64_t until = page; page < end; page = until) {
        until = closed_until(&nearby, page);
        if (until == page)
            return false;
    }
    own_buffer()->begun = true;
    return true;
}

uint64_t ffm_delivery_address(void)
{
    buffer *own = own_buffer();
    return own != NULL && own->begun ? (uint64_t)own->content : 0;
}

void ffm_delivery_arrive(bool done)
{
    buffer *own = own_buffer();
    if (own == NULL || !own->begun || !done)
        return;
    ffm_ranges_lock();
    own->arrived = ffm_closed_memory_write(own->address, own->content, (uint32_t)own->bytes);
    ffm_ranges_unlock();
    if (own->arrived)
        return;
    ffm_aside_driver(own->address, own->address + own->bytes, true);
    memcpy((void *)own->address, own->content, own->bytes); // NOLINT(performance-no-int-to-ptr)
}

const void *ffm_delivery_piece(uint64_t start, uint64_t bytes)
{
    const buffer *own = own_buffer();
    if (own == NULL || !own->arrived || start < own->address || start + bytes > own->address + own->bytes)
        return NULL;
    return own->content + (start - own->address);
}

void ffm_delivery_over(void)
{
    buffer *own = own_buffer();
    if (own == NULL)
        return;
    ffm_ranges_lock();
    own->begun = own->arrived = false;
    own->next = spare;
    spare = own;
    ffm_thread_peek()->delivery = NULL;
    ffm_ranges_unlock();
}
