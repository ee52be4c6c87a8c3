/* The memory that a call copies: rows of bytes on both sides, one box for each copy of the call. */
#ifndef FFM_BOXES_H
#define FFM_BOXES_H

#include <stdbool.h>

#include "catalogue.h"
#include "records.h"

/* `depth` slices of `height` rows of `width` bytes; rows begin `pitch` bytes apart, slices `slice` bytes. Plain memory
 * is one row. An address of 0 stands for memory without one (a CUDA array). */
typedef struct {
    uint64_t address, width, pitch, height, slice, depth;
    bool host; /* the CPU reaches it: pageable, pinned, registered or managed memory */
} ffm_box;

typedef struct {
    ffm_box source, destination;
} ffm_copy;

/* The copy of a transfer or memset at a place from 0 on; false where the call has no more. A memset has no source. */
bool ffm_copy_of(const ffm_function *function, const uint64_t *arguments, const ffm_operation *operation,
                 uint32_t place, ffm_copy *copy);

/* The copy that a CUDA_MEMCPY3D describes. */
ffm_copy ffm_copy_described(const void *descriptor);

/* Say in the operation's flags which sides are host memory, where the call itself does not. */
void ffm_boxes_mark(const ffm_function *function, const uint64_t *arguments, ffm_operation *operation);

/* The driver's own answer about an address: cuPointerGetAttribute, called without its hook. */
void ffm_boxes_ask(void *pointer_attribute);

/* Whether an address is memory of the driver's: of the device, page-locked or managed. */
bool ffm_boxes_of_driver(uint64_t address);

/* Whether the driver says that an address is managed memory, and of how many bytes the allocation is; 0 where it does
 * not tell. */
bool ffm_boxes_managed(uint64_t address, uint64_t *bytes);

/* First byte behind the box. */
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

/* Whether the box, and not only the gaps between its rows, has a byte in [start, end). */
static inline bool ffm_box_touches(const ffm_box *box, uint64_t start, uint64_t end)
{
    uint64_t last = ffm_box_end(box);
    if (end <= box->address || start >= last)
        return false;
    if (box->height == 1 && box->depth == 1)
        return true;
    uint64_t from = start > box->address ? start - box->address : 0, to = end - box->address;
    uint64_t in_slice = box->depth > 1 ? from % box->slice : from;
    if (in_slice >= (box->height - 1) * box->pitch + box->width) /* behind the slice's last row */
        return to - from > box->slice - in_slice;
    uint64_t in_row = box->height > 1 ? in_slice % box->pitch : in_slice;
    if (in_row < box->width)
        return true;
    /* In the gap behind a row. */
    bool last_row = in_slice / box->pitch == box->height - 1;
    return to - from > (last_row ? box->slice - in_slice : box->pitch - in_row);
}

#endif
