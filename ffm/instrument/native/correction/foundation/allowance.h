/* How much memory corrections may take. */
#ifndef FFM_REMEDY_ALLOWANCE_H
#define FFM_REMEDY_ALLOWANCE_H

#include <stddef.h>
#include <stdint.h>

/* At most this much each of host and device memory, and at most a quarter of what is free of each. */
void ffm_allowance_open(size_t bytes);

/* Bytes of pinned host memory for staging. */
size_t ffm_allowance_host(void);

/* Bytes of device memory for copies, given how much is free. */
size_t ffm_allowance_device(size_t free_bytes);

#endif
