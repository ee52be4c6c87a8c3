/* The protection of the pages that watched ranges lie on. Everything here happens under their lock (ranges.h), and is
 * safe in signal handlers. */
#ifndef FFM_PROTECTION_H
#define FFM_PROTECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "range.h"

/* Call a function when the set of protected ranges has changed, under their lock, and protect no page. */
void ffm_protection_mark_with(void (*mark)(void));

/* Protect the pages from `first` to `last` as the ranges nearby need, or mark them. No page is open in between.
 * `ranges` is the table of all. Returns 0, or the error with which the kernel refuses some. */
int64_t ffm_protection_renew(const ffm_range *ranges, const ffm_nearby *nearby, uint64_t first, uint64_t last);

/* Open pages for the calling thread, and for all others. False if the kernel refuses. */
bool ffm_protection_lift(uint64_t start, uint64_t bytes);

/* Whether every page that keys should close has had one so far. May be asked without the lock. */
bool ffm_protection_is_by_keys(void);

/* How often the protection of pages has changed. */
uint64_t ffm_protection_changes(void);

#endif
