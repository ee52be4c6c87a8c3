/* Host memory that the GPU reaches: pinned, registered, managed. */
#ifndef FFM_REMEDY_HOST_MEMORY_H
#define FFM_REMEDY_HOST_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "catalogue.h"
#include "records.h"

/* Note what a call allocated or registered; after it succeeded. */
void ffm_host_memory_allocated(const ffm_function *function, const uint64_t *arguments, const ffm_operation *operation);
void ffm_host_memory_freed(uint64_t address);

/* Kernels may reach host memory in other ways than by their parameters: the program asked for a device address of it,
 * or for that of a managed variable. */
void ffm_host_memory_mapped(void);

/* Bytes go to the device: where they hold an address of host memory, kernels may find it there. Of more than 64 KiB
 * this is not looked for, since it would take as long as the transfer; what was measured tells then (stage 3 looks at
 * all). */
void ffm_host_memory_sent(const void *memory, size_t bytes);

/* Whether kernels may reach host memory by addresses of any kind: there is managed or mapped memory, or more of it than
 * is kept account of. */
bool ffm_host_memory_open(void);

/* Whether some aligned word in the bytes is an address of host memory. */
bool ffm_host_memory_named_in(const void *memory, size_t bytes);

/* Whether an address lies in such memory. Memory outside of all is pageable, or the device's. */
bool ffm_host_memory_holds(uint64_t address);

/* Whether there is any. */
bool ffm_host_memory_any(void);

/* No GPU reaches the memory of a forked child. */
void ffm_host_memory_after_fork(void);

#endif
