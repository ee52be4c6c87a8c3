/* Which work a call has waited for, as far as that is certain. */
#ifndef FFM_WAITS_H
#define FFM_WAITS_H

#include <stdbool.h>

#include "catalogue.h"
#include "thread.h"

enum { FFM_STREAMS_BEHIND = 16 };

/* Work of one stream that the device does before later work of another one, which waits for an event. */
typedef struct {
    uint64_t stream;
    uint64_t before; /* what was issued before this time */
    uint64_t since;  /* when the call returned that ordered it so */
} ffm_ordered;

/* Streams whose work comes before a certain place in another stream. A missing one makes a wait uncertain, never
 * wrong. */
typedef struct {
    uint32_t count;
    ffm_ordered streams[FFM_STREAMS_BEHIND];
} ffm_behind;

typedef struct {
    bool everything; /* of the context */
    uint32_t context;
    uint64_t stream;   /* otherwise, of this stream; see ffm_stream_key */
    uint64_t before;   /* issued before this time */
    ffm_behind behind; /* and what the device does before that */
} ffm_cover;

/* The handle that names the operation's stream in calls of any variant. */
uint64_t ffm_stream_handle(const ffm_function *function, const ffm_operation *operation);

/* One number for each distinct stream of the process, with handles of default streams resolved: each context has its
 * own. */
uint64_t ffm_stream_key(const ffm_function *function, const ffm_operation *operation, const ffm_thread *thread);

/* Note where an event is recorded, or that this may happen unseen, and which streams wait for one; call after each call
 * that does not become part of a graph and does not make a stream part of one. */
void ffm_waits_note(const ffm_function *function, const ffm_operation *operation, const ffm_thread *thread);

/* Whether the call waited, or learned that there is nothing to wait for, and for what. A call that waits for more than
 * it promises covers that too; the cover is what is certain. */
bool ffm_waited(const ffm_function *function, const ffm_operation *operation, const ffm_thread *thread,
                ffm_cover *cover);

static inline bool ffm_covers(const ffm_cover *cover, uint32_t context, uint64_t stream, uint64_t issued)
{
    if (((cover->everything && cover->context == context) || cover->stream == stream) && issued < cover->before)
        return true;
    for (uint32_t i = 0; i < cover->behind.count; i++)
        if (cover->behind.streams[i].stream == stream)
            return issued < cover->behind.streams[i].before;
    return false;
}

/* In a forked child, where a thread that no longer exists may have held the lock. */
void ffm_waits_after_fork(void);

#endif
