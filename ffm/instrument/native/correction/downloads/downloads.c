#include "downloads.h"

#include <stddef.h>
#include <string.h>

#include "blocks.h"
#include "bypasses.h"
#include "counters.h"
#include "delivery.h"
#include "driver.h"
#include "heap.h"
#include "maps.h"
#include "staging.h"
#include "state.h"
#include "touches.h"
#include "trials.h"
#include "uses.h"

enum { WORD_ROOM = 256, HEADER = 16 /* of a block that glibc's malloc maps for itself */ };

typedef ffm_download_late download;

/* Whether nothing else is on the pages of the destination: it covers them, or is an allocation that the C library
 * placed on its own pages (glibc's malloc: the size 16 bytes before it has flags in its lowest bits, 2 for mapped). A
 * page with data of the driver must not be closed: the GPU's progress may depend on it. */
static bool has_own_pages(const download *it)
{
    enum { MAPPED = 2, FLAGS = 7 };
    uint64_t end = it->to + it->bytes;
    if (it->to % FFM_PAGE == 0 && end % FFM_PAGE == 0)
        return true;
    if (it->to % FFM_PAGE != HEADER)
        return false;
    uint64_t size = *(const uint64_t *)(it->to - sizeof(uint64_t));
    return (size & FLAGS) == MAPPED && (size & ~(uint64_t)FLAGS) % FFM_PAGE == 0 &&
           it->to - HEADER + (size & ~(uint64_t)FLAGS) >= ffm_page_after(end);
}

/* Whether the destination's pages may be closed. */
static bool can_be_closed(const download *it)
{
    uint64_t first = ffm_page_of(it->to), last = ffm_page_after(it->to + it->bytes);
    if (it->direct && ffm_blocks_alone(it->to))
        return true;
    if (!ffm_maps_beside_stack(first, last))
        return false;
    if (it->to % FFM_PAGE == 0 && ffm_heap_owns(first, last))
        return true;
    /* No block with pages of its own begins elsewhere: there is no need to read all mappings, which takes long. */
    if (it->to % FFM_PAGE != 0 && it->to % FFM_PAGE != HEADER)
        return false;
    return ffm_maps_private(first, last) && has_own_pages(it);
}

bool ffm_downloads_begin(download *it)
{
    if (ffm_late_is_off() || ffm_bypasses_loaded() || !can_be_closed(it) || !ffm_touches_open())
        return false;
    if (ffm_late_is_in_the_way_of(it))
        ffm_downloads_deliver(it->to, it->to + it->bytes, &ffm_counters->deliveries_called);
    if (!ffm_late_has_room())
        ffm_late_settle();
    size_t staged = it->direct ? 0 : (it->bytes + WORD_ROOM - 1) / WORD_ROOM * WORD_ROOM;
    if (!ffm_late_has_room() || !ffm_staging_take(staged + WORD_ROOM, &it->piece))
        return false;
    it->into = it->direct ? (void *)it->to : it->piece.memory;
    it->done = (uint32_t *)((char *)it->piece.memory + staged);
    *it->done = 0;
    return true;
}

void ffm_downloads_close(const download *it)
{
    if (ffm_late_add(it))
        return;
    if (ffm_late_await(it) && !it->direct)
        memcpy((void *)it->to, it->into, it->bytes);
    ffm_staging_release(&it->piece);
}

bool ffm_downloads_close_transfer(uint64_t start, size_t bytes, bool source, uint64_t stream)
{
    download it = {
        .to = start, .bytes = bytes, .direct = true, .source = source, .stream = stream, .unit = FFM_NO_UNIT};
    if (!ffm_downloads_begin(&it))
        return false;
    pthread_mutex_lock(&ffm_lock); /* until it is enqueued, no capture of the stream may begin */
    bool enqueued = !ffm_state_capturing() && ffm_driver.set_words((uint64_t)it.done, 1, 1, stream) == FFM_CUDA_SUCCESS;
    pthread_mutex_unlock(&ffm_lock);
    if (!enqueued) {
        ffm_staging_release(&it.piece);
        return false;
    }
    ffm_downloads_close(&it);
    return true;
}

void ffm_downloads_before_fork(void)
{
    ffm_late_fork(true);
    ffm_downloads_deliver_all(&ffm_counters->deliveries_called, false);
}

void ffm_downloads_forked(void)
{
    ffm_late_fork(false);
}

void ffm_downloads_after_fork(void)
{
    ffm_late_forget();
    ffm_uses_after_fork();
}
