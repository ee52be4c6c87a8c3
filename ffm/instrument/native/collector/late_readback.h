/* What the destinations of small uploads contain. They are read back in the order of their streams while the program
 * goes on; nobody waits. */
#ifndef FFM_LATE_READBACK_H
#define FFM_LATE_READBACK_H

#include "boxes.h"
#include "catalogue.h"
#include "thread.h"

/* An upload whose destination is read back. */
typedef struct {
    ffm_content content; /* of an upload: `hash` says what it sends */
    uint32_t site;
} ffm_late_upload;

/* `known`: whether the destination could be read; `equal`: whether it contained what the upload sends. */
typedef void (*ffm_late_told)(ffm_thread *thread, const ffm_late_upload *upload, bool known, bool equal);

/* Before an asynchronous upload without gaps: read its destination back. What it contained is told later. False if
 * nothing will be told: the upload is too large, there is no room, the driver lacks the functions, or work is being
 * captured, when CUDA forbids it. */
bool ffm_late_readback_begin(const ffm_function *function, const ffm_operation *operation, const ffm_copy *copy,
                             const ffm_late_upload *upload);

/* Tell of what has been read back by now. */
void ffm_late_readback_tell(ffm_thread *thread, ffm_late_told told);

/* A context may be about to end, or a measured stretch ends: tell of all that is under way, as unknown. */
void ffm_late_readback_give_up(ffm_thread *thread, ffm_late_told told, bool context_ends);

/* In a forked child, where nothing arrives. */
void ffm_late_readback_after_fork(void);

#endif
