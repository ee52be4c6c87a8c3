/* Which work a call has waited for, as far as that is certain. */
#ifndef FFM_WAITS_H
#define FFM_WAITS_H

#include <stdbool.h>

#include "catalogue.h"
#include "thread.h"

typedef struct {
    bool everything; /* of the context */
    uint32_t context;
    uint64_t stream; /* otherwise, of this stream; see ffm_stream_key */
    uint64_t before; /* issued before this time */
} ffm_cover;

/* The handle that names the operation's stream in calls of any variant. */
uint64_t ffm_stream_handle(const ffm_function *function, const ffm_operation *operation);

/* One number for each distinct stream of the process, with handles of default streams resolved: each context has its
 * own. */
uint64_t ffm_stream_key(const ffm_function *function, const ffm_operation *operation, const ffm_thread *thread);

/* Note where an event is recorded, or that this may happen unseen; call after each call. */
void ffm_waits_note(const ffm_function *function, const ffm_operation *operation, const ffm_thread *thread);

/* Whether the call waited, or learned that there is nothing to wait for, and for what. A call that waits for more than
 * it promises covers that too; the cover is what is certain. */
bool ffm_waited(const ffm_function *function, const ffm_operation *operation, const ffm_thread *thread,
                ffm_cover *cover);

static inline bool ffm_covers(const ffm_cover *cover, uint32_t context, uint64_t stream, uint64_t issued)
{
    return ((cover->everything && cover->context == context) || cover->stream == stream) && issued < cover->before;
}

/* In a forked child, where a thread that no longer exists may have held the lock. */
void ffm_waits_after_fork(void);

#endif
