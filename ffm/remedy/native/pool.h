/* Device memory that the program freed and that its next allocation takes (dissertation 7.3).
 *
 * A block may be taken as soon as it was freed: the free left a fence (order.h), so that all work enqueued later, on
 * every stream, starts after all work enqueued before the free. Only blocks allocated at planned stacks are pooled.
 * What the program can ask about memory is answered as if nothing were pooled. */
#ifndef FFM_REMEDY_POOL_H
#define FFM_REMEDY_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Take an idle block of the wanted size, or at most an eighth larger. False where there is none. */
bool ffm_pool_take(size_t bytes, uint64_t *address);

/* How a block was allocated. */
typedef enum {
    FFM_MEMORY_PLAIN,   /* by cuMemAlloc and its like: its free waits for all work */
    FFM_MEMORY_PLANNED, /* the same, at a planned stack: for the pool */
    FFM_MEMORY_ORDERED  /* in a stream's order, from a pool of the driver (cuMemAllocAsync) */
} ffm_pool_memory;

/* Note a block that the driver allocated. */
void ffm_pool_allocated(uint64_t address, size_t bytes, ffm_pool_memory memory);

/* What the pool knows of an address that the program frees. */
typedef enum {
    FFM_BLOCK_UNKNOWN,  /* not one of ours: the driver's business */
    FFM_BLOCK_LIVE,     /* in use; to be freed by the driver */
    FFM_BLOCK_POOLABLE, /* in use, and allocated at a planned stack */
    FFM_BLOCK_ORDERED,  /* in use, and stream-ordered: cuMemFree waits for nothing, the program has */
    FFM_BLOCK_IDLE      /* freed before: an error of the program */
} ffm_block_state;

ffm_block_state ffm_pool_state(uint64_t address);

/* Put a block in use into the pool, once its fence is made. */
void ffm_pool_put(uint64_t address);

/* A block goes back to the driver by the program's own free: forget it before; remember it where that failed. */
void ffm_pool_freed(uint64_t address);

/* Whether [address, address + bytes) lies in one block of device memory in use that nobody else knows. */
bool ffm_pool_holds(uint64_t address, size_t bytes);

/* Base and size, as the program asked for them, of the pooled block in use that holds an address. */
bool ffm_pool_range(uint64_t address, uint64_t *base, size_t *bytes);

/* Others came to know the block's address: from now on it is freed by the driver, and may be written unseen. */
void ffm_pool_share(uint64_t address);

/* Bytes that would be free if the program's frees had reached the driver. */
size_t ffm_pool_hidden_bytes(void);

/* Give all idle blocks back to the driver. Waits for the GPU. False where there was none. */
bool ffm_pool_give_back(void);

/* Forget all blocks: the context took them along. */
void ffm_pool_forget(void);

#endif
