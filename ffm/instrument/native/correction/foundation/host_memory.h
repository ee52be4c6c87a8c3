/* Host memory that the GPU can access: pinned, registered, managed. */
#ifndef FFM_REMEDY_HOST_MEMORY_H
#define FFM_REMEDY_HOST_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "catalogue.h"
#include "records.h"

/* Note what a call allocated or registered, after it succeeded. */
void ffm_host_memory_allocated(const ffm_function *function, const uint64_t *arguments, const ffm_operation *operation);
void ffm_host_memory_freed(uint64_t address);

/* Kernels may access host memory other than by their parameters: the program asked for its device address, or for that
 * of a managed variable, or a kernel that was given its address may have kept it. */
void ffm_host_memory_mapped(void);

/* Bytes go to the device. If they contain an address of host memory, kernels may find it there. Transfers of more than
 * 64 KiB are not searched, because that would take as long as the transfer; for them the measurement decides (stage 3
 * searches all). */
void ffm_host_memory_sent(const void *memory, size_t bytes);

/* Whether kernels may access host memory by addresses of any kind: there is managed or mapped memory, or more host
 * memory than is tracked. */
bool ffm_host_memory_open(void);

/* Whether some aligned word in the bytes is an address of host memory. */
bool ffm_host_memory_named_in(const void *memory, size_t bytes);

/* Whether an address is in such memory. Other memory is pageable or belongs to the device. */
bool ffm_host_memory_holds(uint64_t address);

/* Whether any such memory exists. */
bool ffm_host_memory_any(void);

/* No GPU can access the memory of a forked child. */
void ffm_host_memory_after_fork(void);

#endif
