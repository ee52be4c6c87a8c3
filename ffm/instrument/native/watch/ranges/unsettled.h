/* The watched ranges for which the end of another wait may change something, the newest first. A range that is armed
 * and that each waiting thread has covered stays as it is until it is touched, so a wait need not look at it.
 *
 * Ranges are known by their places (ranges.h). Happens under the lock of the ranges, and is safe in signal handlers. */
#ifndef FFM_UNSETTLED_H
#define FFM_UNSETTLED_H

#include <stdbool.h>
#include <stdint.h>

enum { FFM_UNSETTLED_ROOM = 1 << 14, FFM_NO_PLACE = UINT32_MAX };

/* Put a range on the list, unless it is there. */
void ffm_unsettled_add(uint32_t place);

/* Take it off the list, if it is there. */
void ffm_unsettled_drop(uint32_t place);

/* The range at a place has moved to another, which is on no list. */
void ffm_unsettled_moved(uint32_t from, uint32_t to);

/* Take the next range from the list and put it on that of a later round; FFM_NO_PLACE if there is none. Meanwhile,
 * ranges may be dropped and moved. */
uint32_t ffm_unsettled_take(void);

/* End the round: the list is what was taken, and not dropped, in the same order. */
void ffm_unsettled_end(void);

/* Walk over the list while it does not change: the range after another, or the first after FFM_NO_PLACE. */
uint32_t ffm_unsettled_after(uint32_t place);

/* The list is the first `count` places. */
void ffm_unsettled_reset(uint32_t count);

#endif
