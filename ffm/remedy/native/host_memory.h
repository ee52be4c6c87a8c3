/* Host memory that the GPU reaches: pinned, registered, managed. */
#ifndef FFM_REMEDY_HOST_MEMORY_H
#define FFM_REMEDY_HOST_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "catalogue.h"
#include "records.h"

/* Note what a call allocated or registered; after it succeeded. */
void ffm_host_memory_allocated(const ffm_function *function, const uint64_t *arguments, const ffm_operation *operation);
void ffm_host_memory_freed(uint64_t address);

/* The program asked for a device address of host memory. */
void ffm_host_memory_mapped(void);

/* Whether kernels may reach host memory by addresses of any kind: there is managed or mapped memory. */
bool ffm_host_memory_open(void);

/* Whether an address lies in such memory. Memory outside of all is pageable, or the device's. */
bool ffm_host_memory_holds(uint64_t address);

/* Whether there is any. */
bool ffm_host_memory_any(void);

/* No GPU reaches the memory of a forked child. */
void ffm_host_memory_after_fork(void);

#endif
