/* The addresses among the bytes of uploads: kernels find them on the device. */
#ifndef FFM_UPLOADED_ADDRESSES_H
#define FFM_UPLOADED_ADDRESSES_H

#include <stdint.h>

#include "boxes.h"

/* Note those that an upload carries. */
void ffm_uploaded_addresses_in(const ffm_copy *copy);

/* Likewise of the bytes from `start` to `end` of a source without gaps, after ffm_peek_begin. All parts from the first
 * on are noted in turn: an address may lie in two of them. */
void ffm_uploaded_addresses_part(const ffm_copy *copy, uint64_t start, uint64_t end);

/* While this stays the same, an upload that is repeated carries none that it did not carry before. */
uint64_t ffm_uploaded_addresses_changes(void);

#endif
