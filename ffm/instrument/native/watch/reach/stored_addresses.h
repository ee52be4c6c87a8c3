/* The addresses that the CPU stores in memory that kernels access: a list's nodes, buffers that a structure names. */
#ifndef FFM_STORED_ADDRESSES_H
#define FFM_STORED_ADDRESSES_H

#include <stdbool.h>
#include <stdint.h>

#include "blocks.h"

/* Look for addresses of other blocks in one that a launch can access, by its index. Any kernel may find those from then
 * on; whether there are new ones is returned.
 *
 * A small block of pinned memory, and one in which an address was found, is looked at in each launch, the first MiB of
 * others in the first launches and then ever less often: addresses are mostly stored before memory is used, and stay.
 * Managed memory moves to the host when it is looked at. */
bool ffm_stored_addresses_in(uint32_t place, const ffm_block *block);

/* In a forked child. */
void ffm_stored_addresses_after_fork(void);

#endif
