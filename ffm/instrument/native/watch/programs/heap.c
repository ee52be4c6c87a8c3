#include "heap.h"

#include <errno.h>
#include <malloc.h>

#include "ranges.h"
#include "thread.h"
#include "watched.h"

typedef void (*function)(void *);

/* Whether a range begins or ends behind the block's start, so that its size matters. Without the lock: a range that the
 * block holds stays until the block is freed, or is overwritten. */
static bool near(uint64_t block)
{
    for (uint32_t i = 0; i < ffm_ranges_count(); i++)
        if (ffm_ranges_at(i)->end > block)
            return true;
    return false;
}

static void wrap_free(void *block)
{
    const function original = (function)ffm_followed_original(&ffm_heap[0]);
    const int error = errno;
    if (block != NULL && ffm_watch_active() && near((uint64_t)block) && !ffm_ranges_held()) {
        const ffm_thread *thread = ffm_thread_peek();
        if (thread == NULL || (thread->depth == 0 && thread->bypass == 0))
            ffm_watch_freed((uint64_t)block, malloc_usable_size(block));
    }
    errno = error;
    original(block);
}

ffm_followed ffm_heap[] = {{FFM_FOLLOWED(free)}, {.name = NULL}};
