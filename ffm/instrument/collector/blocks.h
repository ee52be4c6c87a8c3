/* Blocks of host memory that the driver knows: pinned, registered, managed. */
#ifndef FFM_BLOCKS_H
#define FFM_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "catalogue.h"
#include "records.h"

/* Note what a call allocated or registered; call after it. */
void ffm_blocks_note(const ffm_function *function, const ffm_operation *operation);

/* Bytes of the block that starts at an address and is freed now, and forget it; 0 where none starts there. */
uint64_t ffm_blocks_remove(uint64_t start);

/* Whether an address lies in a block. Memory outside of all is pageable. */
bool ffm_blocks_hold(uint64_t address);

/* Whether an address lies in a block that the driver allocated: nothing else lies on its pages. */
bool ffm_blocks_own_pages(uint64_t address);

#endif
