/* The watch: who first touches host memory that the GPU writes or still reads (docs/architecture.md#synchronizations).
 *
 * Memory is protected until it is touched, from the end of the wait on which its use may rely. The GPU's own accesses
 * do not go through the program's page protection. Not covered, without memory protection keys: an access by another
 * thread while a page next to a watched range is open for one instruction or one system call.
 *
 * protected_data.c determines what is watched, arming.c from when, and accesses.c what an access means. faults.c and
 * trace.c detect accesses, system_calls.c predicts the kernel's, and aside.c avoids disturbing what is next to a
 * range. */
#ifndef FFM_WATCH_H
#define FFM_WATCH_H

#include <stdbool.h>

#include "catalogue.h"
#include "records.h"
#include "thread.h"

/* `plan` is followed by the keys of the stacks whose operations are watched, or is NULL for all. Without a plan, or if
 * `whole`, everything is recorded that stage 3 needs about what is watched. */
bool ffm_watch_open(const ffm_plan_header *plan, bool whole);

/* Before a call: handle what the driver is about to read or write on the CPU for the program, and what it frees. If it
 * can be called `with_others`, that is other arguments, its destination may have to be ffm_delivery_address. */
void ffm_watch_before(const ffm_function *function, const uint64_t *arguments, const ffm_operation *operation,
                      bool with_others);

/* After a call: note what its work writes or reads, and protect what it waited for. */
void ffm_watch_after(const ffm_function *function, const uint64_t *arguments, const ffm_operation *operation,
                     uint64_t number, ffm_thread *thread);

/* A wait under no public call has ended. */
void ffm_watch_private_wait(ffm_thread *thread);

/* In a forked child, before it records anything: release locks that threads of its parent may have held, and let go of
 * its parent's recording. */
void ffm_watch_free_locks(void);

#endif
