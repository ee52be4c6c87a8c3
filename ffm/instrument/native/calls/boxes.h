/* The memory that a call copies: rows of bytes on both sides, one box per copy. */
#ifndef FFM_BOXES_H
#define FFM_BOXES_H

#include <stdbool.h>

#include "catalogue.h"
#include "records.h"

/* `depth` slices of `height` rows of `width` bytes; rows start `pitch` bytes apart, slices `slice` bytes. Plain memory
 * is one row. An address of 0 stands for memory without one (a CUDA array). */
typedef struct {
    uint64_t address, width, pitch, height, slice, depth;
    bool host; /* the CPU can access it: pageable, pinned, registered or managed memory */
} ffm_box;

typedef struct {
    ffm_box source, destination;
} ffm_copy;

/* The copy of a transfer or memset at an index from 0; false if the call has no more. A memset has no source. */
bool ffm_copy_of(const ffm_function *function, const uint64_t *arguments, const ffm_operation *operation,
                 uint32_t place, ffm_copy *copy);

/* The copy that a CUDA_MEMCPY3D describes. */
ffm_copy ffm_copy_described(const void *descriptor);

/* Set in the operation's flags which sides are host memory, if the call itself does not say so. */
void ffm_boxes_mark(const ffm_function *function, const uint64_t *arguments, ffm_operation *operation);

/* Provide the driver's own query about an address: cuPointerGetAttribute, called without its hook. */
void ffm_boxes_ask(void *pointer_attribute);

/* Whether an address is in the driver's memory: device, page-locked or managed. */
bool ffm_boxes_of_driver(uint64_t address);

/* Whether the driver says that an address is managed memory, and the size of its allocation in bytes; 0 if it does not
 * report that. */
bool ffm_boxes_managed(uint64_t address, uint64_t *bytes);

/* First byte after the box. */
static inline uint64_t ffm_box_end(const ffm_box *box)
{
    return box->address + (box->depth - 1) * box->slice + (box->height - 1) * box->pitch + box->width;
}

/* Whether two boxes are the same rows. */
static inline bool ffm_box_same(const ffm_box *one, const ffm_box *other)
{
    return one->address == other->address && one->width == other->width && one->height == other->height &&
           one->depth == other->depth && one->pitch == other->pitch && one->slice == other->slice;
}

/* Whether the box itself, and not only the gaps between its rows, has a byte in [start, end). */
static inline bool ffm_box_touches(const ffm_box *box, uint64_t start, uint64_t end)
{
    uint64_t last = ffm_box_end(box);
    if (end <= box->address || start >= last)
        return false;
    if (box->height == 1 && box->depth == 1)
        return true;
    uint64_t from = start > box->address ? start - box->address : 0, to = end - box->address;
    uint64_t in_slice = box->depth > 1 ? from % box->slice : from;
    if (in_slice >= (box->height - 1) * box->pitch + box->width) /* after the slice's last row */
        return to - from > box->slice - in_slice;
    uint64_t in_row = box->height > 1 ? in_slice % box->pitch : in_slice;
    if (in_row < box->width)
        return true;
    /* In the gap after a row. */
    bool last_row = in_slice / box->pitch == box->height - 1;
    return to - from > (last_row ? box->slice - in_slice : box->pitch - in_row);
}

#endif
