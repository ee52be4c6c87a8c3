/* Records that are written as their differences to earlier ones (layout.h, "Packed records"). */
#ifndef FFM_PACKING_H
#define FFM_PACKING_H

#include "sink.h"

/* A place to append packed records of one kind. Zero-initialized means no chunk yet. */
typedef struct {
    ffm_stream stream;
    uint8_t *next;  /* where the next record's bytes go */
    uint64_t mark;  /* from which its first word counts */
    uint64_t *last; /* the last record of each slot of the chunk */
    size_t last_bytes;
} ffm_packer;

/* Append a record of a packed kind. Records that look alike share a slot; only the low byte of its number counts. False
 * if there is no room, as for ffm_sink_reserve. */
bool ffm_pack_record(ffm_packer *packer, uint32_t kind, uint32_t thread, uint32_t slot, const void *record);

/* The same for an operation; its slot is that of its stack. */
bool ffm_pack_operation(ffm_packer *packer, uint32_t thread, const ffm_operation *operation);

/* Unmap the chunk; its content stays recorded. */
void ffm_packer_release(ffm_packer *packer);

#endif
