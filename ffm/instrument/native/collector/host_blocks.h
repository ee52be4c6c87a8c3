/* Pageable host memory that transfers use: where it was allocated and freed (dissertation 6.1.1).
 *
 * Every large allocation is remembered with its stack while it lives, and recorded when a transfer first uses it. So
 * other allocations of a run cost little and leave no trace. */
#ifndef FFM_HOST_BLOCKS_H
#define FFM_HOST_BLOCKS_H

#include <stdbool.h>

#include "records.h"

/* Smaller blocks are ignored: programs allocate them too often, and no transfer of them is worth pinning. */
enum { FFM_HOST_BLOCK_LEAST = 1024, FFM_HOST_BLOCK_FRAMES = 48 };

/* A block was allocated by a function (FFM_ALLOCATOR_…) called at a stack; frames beyond the limit are left out. */
void ffm_host_blocks_allocated(uint64_t start, uint64_t bytes, uint32_t allocator, const uint64_t *frames,
                               uint32_t depth);

/* The driver mapped memory, perhaps where a block was that was freed unseen. Transfers that use it are not recorded. */
void ffm_host_blocks_mapped_by_driver(uint64_t start, uint64_t bytes);

/* Whether a block that its owner, the caller, is about to free may be remembered. Takes no lock. */
bool ffm_host_blocks_may_hold(uint64_t start);

/* It is about to be freed. True if it was recorded: then report its release with ffm_host_blocks_released. */
bool ffm_host_blocks_forget(uint64_t start, uint32_t *number);
void ffm_host_blocks_released(uint32_t number, uint32_t allocator, const uint64_t *frames, uint32_t depth);

/* A transfer, whose stack is given, reads or writes host memory. */
void ffm_host_blocks_used(uint64_t address, uint32_t stack);

/* In a forked child: record again what its own transfers use. */
void ffm_host_blocks_after_fork(void);

#endif
