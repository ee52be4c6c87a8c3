/* Memory that system calls under way read or write: the kernel must not meet a closed page there, so none is closed. */
#ifndef FFM_REMEDY_USES_H
#define FFM_REMEDY_USES_H

#include <stdbool.h>
#include <stdint.h>

/* A system call is about to use [start, end). Returns what ffm_uses_end takes. Look for closed pages only after this:
 * whoever closes pages announces it first, and then looks for uses (late.h). */
uint32_t ffm_uses_begin(uint64_t start, uint64_t end);
void ffm_uses_end(uint32_t use);

/* Whether a system call may be using memory in [first, last). */
bool ffm_uses_any(uint64_t first, uint64_t last);

/* In a forked child, which has none of its parent's other threads. */
void ffm_uses_after_fork(void);

#endif
