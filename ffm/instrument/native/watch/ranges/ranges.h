/* The host ranges that are watched. Everything here happens under the lock (ranges_lock.h), and is safe in signal
 * handlers. */
#ifndef FFM_RANGES_H
#define FFM_RANGES_H

#include <stdbool.h>
#include <stdint.h>

#include "boxes.h"
#include "range.h"
#include "ranges_lock.h"

/* The number of ranges; may be read without the lock, to see whether there is anything to do. */
uint32_t ffm_ranges_count(void);

/* The number of those that are the remainder of a download. Locked. */
uint32_t ffm_ranges_rests(void);

/* The number of those that are to count as used with others. Locked. */
uint32_t ffm_ranges_joining(void);

/* The number of those that are resting. Locked. */
uint32_t ffm_ranges_resting(void);

/* The range at an index from 0. */
ffm_range *ffm_ranges_at(uint32_t place);

/* All ranges that may have a page in common with [start, end), and possibly others. Each can be removed, or replaced by
 * pieces of it, when it is its turn. */
ffm_nearby ffm_ranges_nearby(uint64_t start, uint64_t end);

/* Add a range, not yet protected. Returns false if there is no room. */
bool ffm_ranges_add(const ffm_range *range);

/* Add a piece of an armed range, which is protected. */
bool ffm_ranges_add_armed(const ffm_range *range);

/* Put a range in the place of an armed one of the same box. Its pages stay protected. */
void ffm_ranges_replace(uint32_t place, const ffm_range *range);

/* A range that is closed to all threads stays closed, but an access to it now only opens it and means nothing. */
void ffm_ranges_keep(ffm_range *range);

/* Remove a range; the last one moves to its index. */
void ffm_ranges_remove(uint32_t place);

/* Open all protected ranges. Until this is reverted, ranges that would be armed are left open as well. They are marked
 * `forking`.
 */
void ffm_ranges_hold_open(bool hold);

/* What a thread has done to a range may matter to the next wait (unsettled.h). */
void ffm_ranges_unsettle(const ffm_range *range);

/* Protect a range, or open its pages. False if its pages cannot be protected, or the trace does not see all threads. */
bool ffm_ranges_arm(ffm_range *range);
void ffm_ranges_disarm(ffm_range *range, ffm_range_state next);

/* Put off the changes of protection that follow, until the second call makes them all: many ranges may be on one page.
 * Returns false, and pages on which ranges lie that count as protected, but are not, if the kernel refuses some. */
void ffm_ranges_gather(void);
bool ffm_ranges_gathered(ffm_page *refused);

/* Protect a range whose work may be in flight. False if that cannot be: it is as before. */
bool ffm_ranges_prepare(ffm_range *range);

/* What was to arrive in [start, end), or to be read from there, is over or gone: remove it from all ranges, which may
 * end a range or split it in two. */
void ffm_ranges_cut(uint64_t start, uint64_t end);

/* The same for one range, at an index. */
void ffm_ranges_cut_at(uint32_t place, uint64_t start, uint64_t end);

/* And for a box. If it has several rows, only ranges of exactly these rows end. */
void ffm_ranges_cut_box(const ffm_box *box);

/* Take the lock in a forked child, where a thread that no longer exists may have held it. */
void ffm_ranges_lock_after_fork(void);

/* The page around an address on which some range is closed to the calling thread. False if none is. */
bool ffm_ranges_page_of(uint64_t address, ffm_page *page);

/* Open it to all threads for one instruction or, if there is only one thread, for a while. False if the kernel refuses.
 * Closing protects it as the ranges need at that time. */
bool ffm_ranges_open_page(const ffm_page *page);
void ffm_ranges_close_page(const ffm_page *page);

#endif
