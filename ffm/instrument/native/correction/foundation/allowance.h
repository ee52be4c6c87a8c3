/* How much memory corrections may take. */
#ifndef FFM_REMEDY_ALLOWANCE_H
#define FFM_REMEDY_ALLOWANCE_H

#include <stddef.h>
#include <stdint.h>

/* At most this much each of host and device memory, and at most a quarter of what is free of each. */
void ffm_allowance_open(size_t bytes);

/* Bytes of pinned host memory for staging, and as many for the own pages of heap blocks. */
size_t ffm_allowance_host(void);

/* Bytes of device memory for copies of uploads and idle blocks. Asks the driver once how much is free; until that
 * succeeds, 0. Locked. */
size_t ffm_allowance_device(void);

#endif
