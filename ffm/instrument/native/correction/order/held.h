/* What the program's device memory is known to hold: uploaded contents that nothing can have written since. */
#ifndef FFM_REMEDY_HELD_H
#define FFM_REMEDY_HELD_H

#include "cache.h"

/* Work was enqueued that may write any device memory: kernels write wherever pointers in memory lead. */
void ffm_held_lost(void);

/* Work was enqueued, or memory was freed, that overwrites or ends only this range. */
void ffm_held_overwritten(uint64_t to, size_t bytes);

/* Unobserved calls may enqueue work (cuGetExportTable): from now on nothing is known. */
void ffm_held_unknowable(void);

/* Called before an upload, to detect later whether work enqueued since may have overwritten it. */
uint64_t ffm_held_now(void);

/* The content was uploaded to an address, by work that was enqueued after `before`. */
void ffm_held_uploaded(uint64_t to, const ffm_content_key *content, uint64_t before);

/* Whether the content is at the address, considering all work enqueued so far. */
bool ffm_held_at(uint64_t to, const ffm_content_key *content);

#endif
