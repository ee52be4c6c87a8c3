/* The page watch: who first touches host memory that the GPU writes or still reads (design, section 5).
 *
 * A range is protected from the transfer that needs it watched until its first access. The GPU's own accesses do not
 * go through the program's page protection. */
#ifndef FFM_WATCH_H
#define FFM_WATCH_H

#include <stdbool.h>

#include "catalogue.h"
#include "thread.h"

/* Install the handlers of SIGSEGV and SIGTRAP. `plan` holds the keys of the stacks to watch, or is NULL for all. */
bool ffm_watch_open(const uint8_t *plan, uint64_t keys);

/* Before a call: the driver is about to touch host memory for the program. */
void ffm_watch_before(const ffm_function *function, const ffm_operation *operation, ffm_thread *thread);

/* After a call: watch what its work writes or reads. */
void ffm_watch_after(const ffm_function *function, const ffm_operation *operation, uint64_t number, ffm_thread *thread);

/* Whether anything is watched. */
bool ffm_watch_active(void);

/* The kernel is about to read or write memory for the program. */
void ffm_watch_system_call(uint64_t start, uint64_t bytes, bool writing);

/* In a forked child: the parent's ranges are not watched here. */
void ffm_watch_after_fork(void);

#endif
