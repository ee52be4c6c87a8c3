/* The watch: who first touches host memory that the GPU writes or still reads (design, section 5).
 *
 * Memory is protected from the end of the wait that its work may rely on until it is touched. The GPU's own accesses do
 * not go through the program's page protection. Not covered: an access by another thread in the moment in which a page
 * is open for one instruction, or for one system call, beside a watched range. */
#ifndef FFM_WATCH_H
#define FFM_WATCH_H

#include <stdbool.h>

#include "catalogue.h"
#include "ranges.h"
#include "thread.h"

/* `plan` holds the keys of the stacks whose operations are watched, or is NULL for all. */
bool ffm_watch_open(const uint8_t *plan, uint64_t keys);

/* Before a call: what the driver is about to read or write on the CPU for the program, and what it frees. */
void ffm_watch_before(const ffm_function *function, const uint64_t *arguments, const ffm_operation *operation,
                      ffm_thread *thread);

/* After a call: know what its work writes or reads, and protect what it waited for. */
void ffm_watch_after(const ffm_function *function, const uint64_t *arguments, const ffm_operation *operation,
                     uint64_t number, ffm_thread *thread);

/* A wait under no public call has ended. */
void ffm_watch_private_wait(ffm_thread *thread);

/* Whether anything is watched: without that the calls below are not needed. */
static inline bool ffm_watch_active(void)
{
    return ffm_ranges_count() != 0;
}

/* The kernel is about to read or write memory for the program; and has done so. Together around each such call. */
void ffm_watch_system_call(uint64_t start, uint64_t bytes, bool writing);
void ffm_watch_system_call_over(void);

/* The collector is about to read memory itself; ffm_watch_system_call_over ends that. */
void ffm_watch_aside(uint64_t start, uint64_t end);

/* Whether work that no wait is known to have covered writes there. */
bool ffm_watch_in_flight(uint64_t start, uint64_t end);

/* The program gives memory back, or changes its protection. */
void ffm_watch_released(uint64_t start, uint64_t bytes);

/* The program reads a clock; `caller` is the code that does. */
void ffm_watch_clock(const void *caller);

/* A function of an interpreter that waits for its locks, and reads clocks to do so. */
void ffm_watch_interpreter_lock(uint64_t function);

/* Code whose accesses and clocks are not the program's: the driver, the instruments. */
void ffm_watch_foreign(uint64_t start, uint64_t end, bool driver);

/* Whether code of the driver's is known. */
bool ffm_watch_knows_driver(void);

/* In a forked child: what was downloaded before the fork is watched on. */
void ffm_watch_after_fork(void);

/* ---- for the handlers in faults.c, under the lock of the ranges ---- */

/* An armed range at this place is touched; it may be taken out of the table. */
void ffm_watch_touched(uint32_t place, uint32_t kind, uint64_t address, uint64_t time, uint32_t stack);

/* Give all armed ranges on a page up: they count as used. */
void ffm_watch_give_up(const ffm_page *page, uint64_t time);

/* Whether a stack has frames of the driver. */
bool ffm_watch_in_driver(uint32_t stack);

/* Whether stacks of accesses are wanted (stage 3). */
bool ffm_watch_wants_stacks(void);

#endif
