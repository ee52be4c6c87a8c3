/* The addresses that the CPU stores in memory that kernels access: a list's nodes, buffers that a structure names. */
#ifndef FFM_STORED_ADDRESSES_H
#define FFM_STORED_ADDRESSES_H

#include <stdint.h>

#include "blocks.h"

typedef enum {
    FFM_STORED_NOTHING_NEW,
    FFM_STORED_NEW,    /* other kernels may find these from now on, too */
    FFM_STORED_UNKNOWN /* the CPU may have stored any address there, and nobody has looked */
} ffm_stored;

/* Look for addresses of other blocks in one that a launch can access, by its index.
 *
 * A block is not looked at again if the CPU has not touched it since the last look, which is known while its pages are
 * protected. Looking takes at most a share of the time, because managed memory moves to the host for it. */
ffm_stored ffm_stored_addresses_in(uint32_t place, const ffm_block *block);

/* In a forked child. */
void ffm_stored_addresses_after_fork(void);

#endif
