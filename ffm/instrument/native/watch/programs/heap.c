#include "heap.h"

#include <errno.h>
#include <malloc.h>

#include "ranges.h"
#include "thread.h"
#include "watched.h"

typedef void (*function)(void *);

static void wrap_free(void *block)
{
    const function original = (function)ffm_followed_original(&ffm_heap[0]);
    const int error = errno;
    /* The block's size matters only if a range ends behind its start. */
    if (block != NULL && ffm_watch_active() && ffm_ranges_end_behind((uint64_t)block) && !ffm_ranges_held()) {
        const ffm_thread *thread = ffm_thread_peek();
        if (thread == NULL || (thread->depth == 0 && thread->bypass == 0))
            ffm_watch_freed((uint64_t)block, malloc_usable_size(block));
    }
    errno = error;
    original(block);
}

ffm_followed ffm_heap[] = {{FFM_FOLLOWED(free)}, {.name = NULL}};
