/* Pinned host memory through which transfers are staged, so that they need not wait. */
#ifndef FFM_REMEDY_STAGING_H
#define FFM_REMEDY_STAGING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A piece of staging memory. */
typedef struct {
    void *memory;
    uint32_t ring, slot;
} ffm_staged;

/* Take a piece; false where all is in use and no more may be had. */
bool ffm_staging_take(size_t bytes, ffm_staged *piece);

/* The work that uses the piece was enqueued on the stream: the piece is free when that work is done. False where the
 * driver refuses; the caller must then wait for the stream itself. */
bool ffm_staging_enqueued(const ffm_staged *piece, uint64_t stream);

/* The piece is free at once. */
void ffm_staging_release(const ffm_staged *piece);

/* Forget all memory: the context took it along. */
void ffm_staging_forget(void);

#endif
