/* What memory of the device holds, read back in the order of a stream. */
#ifndef FFM_READBACK_H
#define FFM_READBACK_H

#include "catalogue.h"
#include "hashes.h"

/* Hash what the destination of an upload holds before it. False where it cannot be read: by CUDA's rules while work is
 * captured, and where the rows lie too far apart. */
bool ffm_readback_hash(const ffm_function *function, const ffm_operation *operation, const ffm_box *destination,
                       ffm_hash *hash);

/* In a forked child, where a thread that is gone may have held the lock. */
void ffm_readback_after_fork(void);

#endif
