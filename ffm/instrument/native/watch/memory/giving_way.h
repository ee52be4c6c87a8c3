/* Pages that are not watched any more, because the program accesses what lies beside the watched data too often.
 *
 * What is watched there counts as used. Where a single thread waits and uses results, it counts as used by it after its
 * last wait. That wait is then required, although nothing may rely on it; a later use can rely on it, too, so that no
 * wait is called unnecessary by mistake. With several threads, who uses it is unknown, and the wait of each range is
 * required. So at most one wait in a hundred is missed. In stage 4, no verdict rests on it: what is given up counts as
 * used at an unknown time (watch_budget.h), and nothing is missed. */
#ifndef FFM_GIVING_WAY_H
#define FFM_GIVING_WAY_H

#include <stdbool.h>
#include <stdint.h>

#include "ranges.h"

/* Give up a page. Returns false, and does nothing, if that could miss too many waits, unless it is `urgent`. Under the
 * lock of the ranges. */
bool ffm_access_give_way(const ffm_page *page, bool urgent, uint64_t time);

/* There is too much on the pages of [start, end) to set it aside: where a single thread waits and uses results, and in
 * stage 4, all of it counts as used. Likewise. */
void ffm_access_make_room(uint64_t start, uint64_t end, uint64_t time);

#endif
