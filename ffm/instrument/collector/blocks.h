/* Blocks of host memory that the driver knows: pinned, registered, managed. The GPU reaches them without a transfer. */
#ifndef FFM_BLOCKS_H
#define FFM_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "catalogue.h"
#include "records.h"

typedef struct {
    uint64_t start, bytes;
    uint64_t device; /* where the GPU sees it; with unified addressing the same */
    bool own_pages;  /* the driver allocated it; else it is the program's own memory, registered */
    bool managed;    /* it moves between the host and the device */
    bool handed;     /* its address lies in memory that the GPU reads: any kernel may find it */
} ffm_block;

/* Note what a call allocated or registered, or which device address it asked for; call after it. */
void ffm_blocks_note(const ffm_function *function, const ffm_operation *operation);

/* Note a variable of the program's own that any kernel may use, unless it is known. */
void ffm_blocks_add_variable(uint64_t start, uint64_t bytes);

/* Whether all blocks are known: there was room for each. */
bool ffm_blocks_complete(void);

/* Bytes of the block that starts at an address and is freed now, and forget it; 0 where none starts there. */
uint64_t ffm_blocks_remove(uint64_t start);

/* Whether an address lies in a block. Memory outside of all is pageable. */
bool ffm_blocks_hold(uint64_t address);

/* Whether an address lies in a block that the driver allocated: nothing else lies on its pages. */
bool ffm_blocks_own_pages(uint64_t address);

/* Whether an address lies in managed memory. */
bool ffm_blocks_managed(uint64_t address);

/* How many there are: 0 means that no kernel reaches host memory. */
uint32_t ffm_blocks_count(void);

/* Copy the block at a place from 0 on, which it keeps until it is freed; one of no bytes where the place is free. False
 * behind the last. */
bool ffm_blocks_at(uint32_t place, ffm_block *block);

/* The place of the block that a host or device address lies in; false where there is none. */
bool ffm_blocks_find(uint64_t address, uint32_t *place);

/* The GPU was handed addresses in these words. O(words). */
void ffm_blocks_scan(const void *words, uint64_t bytes);

/* In a forked child, where a thread that is gone may have held the lock. */
void ffm_blocks_after_fork(void);

#endif
