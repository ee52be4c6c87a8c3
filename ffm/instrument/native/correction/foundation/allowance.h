/* How much memory corrections may take. */
#ifndef FFM_REMEDY_ALLOWANCE_H
#define FFM_REMEDY_ALLOWANCE_H

#include <stddef.h>
#include <stdint.h>

/* At most this much each of host and device memory, and at most a quarter of what is free of each. */
void ffm_allowance_open(size_t bytes);

/* Bytes of pinned host memory for staging, and as many again for giving heap blocks pages of their own. */
size_t ffm_allowance_host(void);

/* Ask the driver how much device memory is free, unless it has answered. Not under ffm_lock: the driver may wait for a
 * thread that wants the lock. */
void ffm_allowance_ask(void);

/* Bytes of device memory for copies of uploads and idle blocks; 0 until the driver has answered. */
size_t ffm_allowance_device(void);

#endif
