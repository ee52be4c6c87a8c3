/* What the program's device memory is known to hold: contents that were uploaded, and that nothing can have written
 * since. */
#ifndef FFM_REMEDY_HELD_H
#define FFM_REMEDY_HELD_H

#include "cache.h"

/* Work was enqueued that may write any device memory: kernels write where pointers in memory lead them. */
void ffm_held_lost(void);

/* Work was enqueued, or memory was freed, that writes or ends a range alone. */
void ffm_held_overwritten(uint64_t to, size_t bytes);

/* Somebody enqueues work by calls that are not seen (cuGetExportTable): from now on nothing is known. */
void ffm_held_unknowable(void);

/* Before an upload; to tell whether something was enqueued since that may have written over it. */
uint64_t ffm_held_now(void);

/* The content was uploaded to an address, by work that was enqueued after `before`. */
void ffm_held_uploaded(uint64_t to, const ffm_content_key *content, uint64_t before);

/* Whether the content is at the address, by all that was enqueued so far. */
bool ffm_held_at(uint64_t to, const ffm_content_key *content);

#endif
