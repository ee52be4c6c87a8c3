/* Delivers pending downloads: their bytes reach their destinations, whose pages open again. */
#ifndef FFM_REMEDY_DELIVERY_H
#define FFM_REMEDY_DELIVERY_H

#include <stdbool.h>
#include <stdint.h>

#include "late.h"

/* Deliver everything on the pages of [start, end), waiting if necessary. True if there was anything. `why` is the
 * counter of the reason. */
bool ffm_downloads_deliver(uint64_t start, uint64_t end, uint64_t *why);

/* Deliver everything, so that no download is pending. `off`: none will be deferred from now on. */
void ffm_downloads_deliver_all(uint64_t *why, bool off);

/* Deliver what a driver call may read or write on the CPU: whatever its arguments point to. */
void ffm_downloads_before_call(const uint64_t *arguments, int count);

#endif
