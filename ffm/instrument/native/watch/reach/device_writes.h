/* When a kernel may have written device memory: one whose parameters lead to the allocation, or another process's.
 *
 * Parameters lead to the allocations whose addresses they contain, and to all memory of which these may contain the
 * address: by an upload or a copy on the device, or because an earlier kernel knew both, or kept it in a variable.
 * Where that cannot be followed (graphs, host memory that the GPU uses, parameters or uploads that are not known),
 * every kernel may have written everything from then on. Which allocations lead to each other is recorded (ffm_joined).
 * Once memory is shared with another process, everything may have been written just now. */
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

/* The device memory receives these bytes, which may contain addresses. O(bytes). */
void ffm_device_writes_upload(uint64_t destination, const void *bytes, uint64_t count);

/* How many allocations there have been: until there is another one, bytes that were received once lead to nothing new
 * when the same memory receives them again. */
uint64_t ffm_device_writes_added(void);

/* Code is loaded that has variables with room for an address. */
void ffm_device_writes_kept(void);

/* It receives bytes that are not known. */
void ffm_device_writes_unknown(void);

/* When a kernel that may have written any of the box was last launched; 0 if none was, now if another process's may
 * have, FFM_WRITES_UNKNOWN if it is not in an allocation of device memory that is known. */
uint64_t ffm_device_writes_last(const ffm_box *box);

/* In a forked child, where a thread that no longer exists may have held the lock. */
void ffm_device_writes_after_fork(void);

#endif
