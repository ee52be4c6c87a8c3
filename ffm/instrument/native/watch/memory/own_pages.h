/* What the library that gives heap blocks pages of their own is told about results (preload/result_blocks.h). Safe in
 * signal handlers. */
#ifndef FFM_OWN_PAGES_H
#define FFM_OWN_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ranges.h"

/* The library is there from now on, if it is preloaded: it calls `freed` before the memory of a block changes. */
void ffm_own_pages_open(void (*freed)(void *block, size_t bytes));

/* Give a block back if it comes from the library; false otherwise. Code that calls the C library's `free` past it, as
 * code that was loaded with RTLD_DEEPBIND does, may have got the block from other code. */
bool ffm_own_pages_free(void *block);

/* A range is about to be watched. */
void ffm_own_pages_used(const ffm_range *range);

/* An access is stepped over on a page. Under the lock of the ranges. */
void ffm_own_pages_beside(const ffm_page *page);

#endif
