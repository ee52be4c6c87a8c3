/* Offsets in the structures of a Python interpreter, by its version. */
#ifndef FFM_PYTHON_LAYOUT_H
#define FFM_PYTHON_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

/* All in bytes from the start of the structure. */
typedef struct {
    uint32_t current_frame; /* in the thread's state */
    bool through_cframe;    /* ... is a pointer to the place where `cframe_frame` is the current frame */
    uint32_t cframe_frame;
    uint32_t code, previous, instruction, owner; /* in a frame */
    uint32_t is_entry;                           /* 0 if entries are marked by separate frames */
    uint32_t shim;                               /* owner of a frame that marks an entry; a greater one marks nothing */
    uint64_t tag;                                /* bits of a reference to a code object that are no address */
    uint32_t file, name, line_table, first_line, instructions; /* in a code object */
    uint32_t object;                                           /* bytes of an object's header */
    uint32_t ascii;                                            /* bytes of a string's header, if it is ASCII */
    uint32_t compact;                                          /* the same if it is not */
} ffm_python_layout;

/* The layout of the released version with a PY_VERSION_HEX, whose `_PyRuntime` is at `runtime`. False if it is unknown:
 * versions other than 3.11 to 3.15, previews, and interpreters without a global lock. */
bool ffm_python_layout_of(uint32_t version, const void *runtime, ffm_python_layout *out);

#endif
