/* Blocks of host memory that the driver knows: pinned, registered, managed. The GPU accesses them without a
 * transfer. */
#ifndef FFM_BLOCKS_H
#define FFM_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "catalogue.h"
#include "records.h"

typedef struct {
    uint64_t start, bytes;
    uint64_t device; /* where the GPU sees it; the same under unified addressing */
    bool allocated;  /* by the driver; otherwise it is the program's own memory, registered */
    bool alone; /* nothing else is on its pages: drivers put several pinned blocks, and their own data, into one mapping
                 */
    bool managed; /* it moves between the host and the device */
    bool handed;  /* its address is, or may be, in memory that the GPU reads, or a view shows it: any kernel may find it
                   */
} ffm_block;

/* Note what a call allocated or registered, which device address it requested, or of what it made a texture or a tensor
 * map; call afterwards. */
void ffm_blocks_note(const ffm_function *function, const ffm_operation *operation);

/* Note one of the program's variables that any kernel may use, unless it is already known. */
void ffm_blocks_add_variable(uint64_t start, uint64_t bytes);

/* Whether all blocks are known, because there was room for each. */
bool ffm_blocks_complete(void);

/* Forget the block that starts at an address and is being freed; returns its bytes, or 0 if none starts there. */
uint64_t ffm_blocks_remove(uint64_t start);

/* Whether an address is in a block. Memory outside all blocks is pageable. */
bool ffm_blocks_hold(uint64_t address);

/* Whether an address is in a block that the driver allocated. */
bool ffm_blocks_allocated(uint64_t address);

/* Whether it is in a block that the driver allocated on pages of its own. */
bool ffm_blocks_alone(uint64_t address);

/* Whether an address is in managed memory. */
bool ffm_blocks_managed(uint64_t address);

/* The number of blocks: 0 means that no kernel can access host memory. */
uint32_t ffm_blocks_count(void);

/* Copy the block at an index from 0, which it keeps until it is freed; one with no bytes if the index is free. False
 * after the last. */
bool ffm_blocks_at(uint32_t place, ffm_block *block);

/* The index of the block that contains a host or device address; false if there is none. */
bool ffm_blocks_find(uint64_t address, uint32_t *place);

/* Code whose arrays count from one holds the address one element before an array. Elements have 32 bytes at most (CUDA
 * C++ Programming Guide, "Built-in Vector Types"). */
enum { FFM_LARGEST_ELEMENT = 32, FFM_BLOCKS_NAMED = 2 };

/* The indices of the blocks that an address may name: the one that contains it, and one that begins an element later.
 * Returns how many. */
uint32_t ffm_blocks_named(uint64_t address, uint32_t places[FFM_BLOCKS_NAMED]);

/* The GPU receives these words, which may contain addresses. O(words). */
void ffm_blocks_scan(const void *words, uint64_t bytes);

/* Addresses of other blocks among words: none, or only ones that the GPU had before, or others. */
typedef enum { FFM_NO_ADDRESS, FFM_KNOWN_ADDRESS, FFM_NEW_ADDRESS } ffm_addresses;

/* The words are in the block at an index, and the GPU can read them. O(words). */
ffm_addresses ffm_blocks_scan_within(uint32_t place, const void *words, uint64_t bytes);

/* How often a block was added or got a device address. While this stays the same, words that were scanned once say
 * nothing new. */
uint64_t ffm_blocks_changes(void);

/* Any kernel may find the address of the block at an index from now on. */
void ffm_blocks_hand(uint32_t place);

/* The GPU may have received the addresses of all blocks that there are, unseen. */
void ffm_blocks_hand_all(void);

/* In a forked child, where a thread that no longer exists may have held the lock. */
void ffm_blocks_after_fork(void);

#endif
