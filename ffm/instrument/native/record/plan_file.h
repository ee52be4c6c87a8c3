/* Plans: files that tell a library in the program what to do. */
#ifndef FFM_PLAN_FILE_H
#define FFM_PLAN_FILE_H

#include <stddef.h>

#include "records.h"

/* What a kind of plan begins with, and the sizes of its header and of each record. */
typedef struct {
    const char *magic;
    uint32_t version;
    size_t header_bytes; /* at least those of an ffm_plan_header */
    size_t record_bytes;
} ffm_plan_kind;

/* Map a plan: its header, and then as many records as the header says. NULL if the file cannot be read, or is not a
 * whole plan of this kind and version. */
const ffm_plan_header *ffm_plan_file_map(const char *path, const ffm_plan_kind *kind);

#endif
