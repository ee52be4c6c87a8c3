/* A download to closed pages that need not be opened for it: the driver writes into a buffer, from which the bytes are
 * copied into the pages while these stay closed (closed_memory.h). To close a page again, the kernel interrupts each
 * processor on which another thread of the process runs, which takes longer than such a copy.
 *
 * Only for memory that is closed as a whole: it was the program's to write when it was closed, while a write that
 * ignores protection could change memory elsewhere that is not. A call that fails changes nothing there. */
#ifndef FFM_DELIVERY_H
#define FFM_DELIVERY_H

#include <stdbool.h>
#include <stdint.h>

#include "boxes.h"

/* The calling thread is about to download to a box of pageable memory: find a buffer. False if the pages of the box
 * have to be opened. Under the lock of the ranges, as the next two. */
bool ffm_delivery_prepare(const ffm_box *box);

/* Use the buffer if all pages of the box are closed. Returns whether they are. */
bool ffm_delivery_begin(const ffm_box *box);

/* The address to give the driver in place of the box's; 0 if the driver writes there itself. */
uint64_t ffm_delivery_address(void);

/* The driver has written into the buffer, or has failed: copy the bytes to where they belong. */
void ffm_delivery_arrive(bool done);

/* What has arrived at an address, in the buffer; NULL if not all of these bytes are there. */
const void *ffm_delivery_piece(uint64_t start, uint64_t bytes);

/* The call is over: let go of the buffer. */
void ffm_delivery_over(void);

#endif
