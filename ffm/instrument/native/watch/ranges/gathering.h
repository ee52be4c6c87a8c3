/* Changes of the protection of pages, which can be put off: many ranges may be on one page. Pages are changed by a
 * function that returns 0, or the error with which the kernel refuses some. Under the lock of the ranges, and safe in
 * signal handlers. */
#ifndef FFM_GATHERING_H
#define FFM_GATHERING_H

#include <stdbool.h>
#include <stdint.h>

#include "range.h"

typedef int64_t (*ffm_page_change)(uint64_t first, uint64_t last);

/* Put off the changes that follow. */
void ffm_gathering_begin(void);
bool ffm_gathering(void);

/* Make all of them. Returns false, and pages of which the kernel refused some, if there are any. */
bool ffm_gathering_end(ffm_page_change change, ffm_page *refused);

/* Change the pages from `first` to `last`, now or later. Returns 0, or the error with which the kernel refuses some. */
int64_t ffm_gathering_change(ffm_page_change change, uint64_t first, uint64_t last);

#endif
