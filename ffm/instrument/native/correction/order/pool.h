/* Device memory that the program freed, for reuse by its next allocation (dissertation 7.3).
 *
 * A block may be reused as soon as it was freed: the free left a fence (order.h), so all work enqueued later, on any
 * stream, starts after all work enqueued before the free. Only blocks allocated at planned stacks are pooled. Queries
 * about memory are answered as if nothing were pooled. */
#ifndef FFM_REMEDY_POOL_H
#define FFM_REMEDY_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Take an idle block of the wanted size, or at most an eighth larger. False if there is none. */
bool ffm_pool_take(size_t bytes, uint64_t *address);

/* How a block was allocated. */
typedef enum {
    FFM_MEMORY_PLAIN,   /* by cuMemAlloc and similar calls: its free waits for all work */
    FFM_MEMORY_PLANNED, /* the same, at a planned stack: can be pooled */
    FFM_MEMORY_ORDERED  /* stream-ordered, from a pool of the driver (cuMemAllocAsync) */
} ffm_pool_memory;

/* Note a block that the driver allocated. */
void ffm_pool_allocated(uint64_t address, size_t bytes, ffm_pool_memory memory);

/* What the pool knows about an address that the program frees. */
typedef enum {
    FFM_BLOCK_UNKNOWN,  /* not one of ours: left to the driver */
    FFM_BLOCK_LIVE,     /* in use; to be freed by the driver */
    FFM_BLOCK_POOLABLE, /* in use, and allocated at a planned stack */
    FFM_BLOCK_ORDERED,  /* in use, and stream-ordered: cuMemFree does not wait; the program has waited */
    FFM_BLOCK_IDLE      /* already freed: an error of the program */
} ffm_block_state;

ffm_block_state ffm_pool_state(uint64_t address);

/* Put a block in use into the pool, once its fence exists. */
void ffm_pool_put(uint64_t address);

/* The program frees a block through the driver: forget it before the call, and restore it if the call failed. */
void ffm_pool_freed(uint64_t address);

/* Whether [address, address + bytes) is in one block of device memory in use that is known to nobody else. */
bool ffm_pool_holds(uint64_t address, size_t bytes);

/* Base and size, as the program requested them, of the pooled block in use that contains an address. */
bool ffm_pool_range(uint64_t address, uint64_t *base, size_t *bytes);

/* The program asks the driver about an address: if its block is idle, return that to the driver first, which waits for
 * the GPU. The answer is then that for freed memory. Not while a stream is captured, which forbids freeing. */
void ffm_pool_asked(uint64_t address);

/* The program gives others the block at an address, or an attribute that stays with it: from now on the driver frees
 * it, and it may be written unseen. An idle block is returned first, as above. */
void ffm_pool_share(uint64_t address);

/* Bytes that would be free if the program's frees had reached the driver. */
size_t ffm_pool_hidden_bytes(void);

/* Return all idle blocks to the driver. Waits for the GPU. False if there were none. */
bool ffm_pool_give_back(void);

/* Forget all blocks: they were destroyed with the context. */
void ffm_pool_forget(void);

#endif
