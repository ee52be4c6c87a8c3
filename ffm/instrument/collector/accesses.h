/* Accesses to watched ranges: what is recorded of each, and what becomes of its range. Under the lock of the ranges,
 * and safe in signal handlers. */
#ifndef FFM_ACCESSES_H
#define FFM_ACCESSES_H

#include <stdbool.h>
#include <stdint.h>

#include "ranges.h"

/* Record an access of a kind `FFM_ACCESS_…` to a range. */
void ffm_access_record(const ffm_range *range, uint32_t kind, uint32_t flags, uint64_t address, uint64_t time,
                       uint32_t stack);

/* The armed range at a place cannot be watched any more: it counts as used. It is taken out of the table. */
void ffm_access_lost(uint32_t place, uint64_t time);

/* An access to [start, end) that the watch came upon: it touches all armed ranges there that it may not. */
void ffm_access_seen(uint64_t start, uint64_t end, bool writing, uint64_t time, uint32_t stack);

/* The CPU touches [start, end) now in a way that no fault tells: a kind other than a read or write. */
void ffm_access_unseen(uint64_t start, uint64_t end, bool writing, uint32_t kind, uint32_t stack);

/* Whether an access to [start, end) touches an armed range that forbids it. */
bool ffm_access_forbidden(uint64_t start, uint64_t end, bool writing);

/* The same, leaving out what is left of downloads that were touched before. */
bool ffm_access_first(uint64_t start, uint64_t end, bool writing);

/* Give all armed ranges on a page up: they count as used. */
void ffm_access_give_up(const ffm_page *page, uint64_t time);

/* In a forked child: what is watched so far is the parent's. */
void ffm_accesses_after_fork(void);

#endif
