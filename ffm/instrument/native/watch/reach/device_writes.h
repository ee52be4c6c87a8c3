/* When a kernel may last have written device memory: a kernel whose parameters lead to the allocation, or one of
 * another process.
 *
 * Parameters lead to the allocations whose addresses they contain, and on to all memory whose addresses those may
 * contain: from an upload or a copy on the device, or because an earlier kernel knew both, or kept the address in a
 * variable. Where that cannot be followed (graphs, host memory that the GPU uses, parameters or uploads that are not
 * known), every kernel may have written everything from then on. Which allocations lead to each other is recorded
 * (ffm_joined). Once memory is shared with another process, everything may have been written just now. */
#ifndef FFM_DEVICE_WRITES_H
#define FFM_DEVICE_WRITES_H

#include <stdint.h>

#include "boxes.h"
#include "catalogue.h"
#include "records.h"

/* Before a call that will be made: note in a launch what its parameters lead to, and what they are. */
void ffm_device_writes_before(const ffm_function *function, const uint64_t *arguments, ffm_operation *operation);

/* After it. */
void ffm_device_writes_after(const ffm_function *function, const ffm_operation *operation);

/* Device memory receives these bytes, which may contain addresses. O(bytes). */
void ffm_device_writes_upload(uint64_t destination, const void *bytes, uint64_t count);

/* How many allocations there have been. While this stays the same, bytes that the same memory receives again lead to
 * nothing new. */
uint64_t ffm_device_writes_added(void);

/* Code is loaded that has variables with room for an address. */
void ffm_device_writes_kept(void);

/* Device memory receives bytes that are not known. */
void ffm_device_writes_unknown(void);

/* When a kernel that may have written any of the box was last launched; 0 if none was; the current time if one of
 * another process may have; FFM_WRITES_UNKNOWN if the box is not in a known allocation of device memory. */
uint64_t ffm_device_writes_last(const ffm_box *box);

/* In a forked child, where a thread that no longer exists may have held the lock. */
void ffm_device_writes_after_fork(void);

#endif
