/* Pinned host memory for staging transfers, so that they need not wait. */
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

/* Take a piece; false if all memory is in use and no more may be allocated. */
bool ffm_staging_take(size_t bytes, ffm_staged *piece);

/* The work that uses the piece was enqueued on the stream: the piece is free when that work is done. False if the
 * driver refuses; the caller must then wait for the stream itself. */
bool ffm_staging_enqueued(const ffm_staged *piece, uint64_t stream);

/* Free the piece at once. */
void ffm_staging_release(const ffm_staged *piece);

/* Forget all memory: it was freed with the context. */
void ffm_staging_forget(void);

#endif
