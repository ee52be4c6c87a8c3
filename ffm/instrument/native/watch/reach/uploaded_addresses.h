/* The addresses among the bytes of uploads: kernels find them on the device. */
#ifndef FFM_UPLOADED_ADDRESSES_H
#define FFM_UPLOADED_ADDRESSES_H

#include <stdint.h>

#include "boxes.h"

/* Note those that an upload carries. */
void ffm_uploaded_addresses_in(const ffm_copy *copy);

/* The same for the bytes from `start` to `end` of a source without gaps, after ffm_peek_begin. Note all parts in turn,
 * from the first on: an address may lie across two of them. */
void ffm_uploaded_addresses_part(const ffm_copy *copy, uint64_t start, uint64_t end);

/* While this stays the same, a repeated upload carries no address that it did not carry before. */
uint64_t ffm_uploaded_addresses_changes(void);

#endif
