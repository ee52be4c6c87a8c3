/* What device memory contains, read back in the order of a stream. */
#ifndef FFM_READBACK_H
#define FFM_READBACK_H

#include "boxes.h"
#include "catalogue.h"
#include "hashes.h"

/* Hash what the destination of an upload contains before the upload. False if it cannot be read: if the rows are too
 * far apart, or while work is captured, when CUDA forbids it. */
bool ffm_readback_hash(const ffm_function *function, const ffm_operation *operation, const ffm_box *destination,
                       ffm_hash *hash);

/* Whether the destination of an upload already contains what the upload sends; both are without gaps. Reads no further
 * than to the first difference. False as above. */
bool ffm_readback_compare(const ffm_function *function, const ffm_operation *operation, const ffm_copy *copy,
                          bool *equal);

/* In a forked child, where a thread that no longer exists may have held the lock. */
void ffm_readback_after_fork(void);

#endif
