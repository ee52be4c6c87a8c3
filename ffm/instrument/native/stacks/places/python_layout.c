#include "python_layout.h"

#include <stddef.h>
#include <string.h>

/* From CPython's headers of these versions (Include/cpython/pystate.h, code.h, unicodeobject.h and
 * Include/internal/pycore_frame.h); they are identical within 3.11 and within 3.12. */
static const ffm_python_layout layout_3_11 = {.current_frame = 56,
                                              .through_cframe = true,
                                              .cframe_frame = 8,
                                              .code = 32,
                                              .previous = 48,
                                              .instruction = 56,
                                              .owner = 69,
                                              .is_entry = 68,
                                              .shim = 3,
                                              .file = 112,
                                              .name = 128,
                                              .line_table = 136,
                                              .first_line = 72,
                                              .instructions = 184,
                                              .object = 16,
                                              .ascii = 48,
                                              .compact = 72};
static const ffm_python_layout layout_3_12 = {.current_frame = 56,
                                              .through_cframe = true,
                                              .cframe_frame = 0,
                                              .code = 0,
                                              .previous = 8,
                                              .instruction = 56,
                                              .owner = 70,
                                              .shim = 3,
                                              .file = 112,
                                              .name = 128,
                                              .line_table = 136,
                                              .first_line = 68,
                                              .instructions = 192,
                                              .object = 16,
                                              .ascii = 40,
                                              .compact = 56};

/* Since 3.13 the interpreter describes itself, in words at the start of `_PyRuntime` (struct _Py_DebugOffsets of
 * Include/internal/pycore_debug_offsets.h). These are their indices, by version. */
enum { OFFSETS_VERSION = 1, OFFSETS_FREE_THREADED = 2 };
typedef struct {
    uint32_t current_frame, previous, executable, instruction, owner;
    uint32_t file, qualified_name, line_table, first_line, instructions, object;
} offset_places;

static const offset_places places_3_13 = {.current_frame = 23,
                                          .previous = 29,
                                          .executable = 30,
                                          .instruction = 31,
                                          .owner = 33,
                                          .file = 35,
                                          .qualified_name = 37,
                                          .line_table = 38,
                                          .first_line = 39,
                                          .instructions = 43,
                                          .object = 44};
static const offset_places places_3_14 = {.current_frame = 26,
                                          .previous = 32,
                                          .executable = 33,
                                          .instruction = 34,
                                          .owner = 36,
                                          .file = 40,
                                          .qualified_name = 42,
                                          .line_table = 43,
                                          .first_line = 44,
                                          .instructions = 48,
                                          .object = 50};

static const offset_places places_3_15 = {.current_frame = 26,
                                          .previous = 40,
                                          .executable = 41,
                                          .instruction = 42,
                                          .owner = 44,
                                          .file = 48,
                                          .qualified_name = 50,
                                          .line_table = 51,
                                          .first_line = 52,
                                          .instructions = 56,
                                          .object = 58};

static const offset_places *places_of(uint32_t version)
{
    switch (version >> 16) {
    case 0x030D:
        return &places_3_13;
    case 0x030E:
        return &places_3_14;
    case 0x030F:
        return &places_3_15;
    default:
        return NULL;
    }
}

static ffm_python_layout layout_from(const uint64_t *offsets, const offset_places *places)
{
    return (ffm_python_layout){.current_frame = (uint32_t)offsets[places->current_frame],
                               .code = (uint32_t)offsets[places->executable],
                               .previous = (uint32_t)offsets[places->previous],
                               .instruction = (uint32_t)offsets[places->instruction],
                               .owner = (uint32_t)offsets[places->owner],
                               .shim = 3,
                               .tag = 7,
                               .file = (uint32_t)offsets[places->file],
                               .name = (uint32_t)offsets[places->qualified_name],
                               .line_table = (uint32_t)offsets[places->line_table],
                               .first_line = (uint32_t)offsets[places->first_line],
                               .instructions = (uint32_t)offsets[places->instructions],
                               .object = (uint32_t)offsets[places->object],
                               .ascii = (uint32_t)offsets[places->object] + 24,
                               .compact = (uint32_t)offsets[places->object] + 40};
}

bool ffm_python_layout_of(uint32_t version, const void *runtime, ffm_python_layout *out)
{
    if ((version & 0xF0) != 0xF0) /* a preview may differ from the release */
        return false;
    if (version >> 16 == 0x030B) {
        *out = layout_3_11;
        return true;
    }
    if (version >> 16 == 0x030C) {
        *out = layout_3_12;
        return true;
    }
    const uint64_t *offsets = runtime;
    const offset_places *places = places_of(version);
    if (places == NULL || offsets == NULL || memcmp(offsets, "xdebugpy", 8) != 0 ||
        offsets[OFFSETS_VERSION] != version || offsets[OFFSETS_FREE_THREADED] != 0)
        return false;
    *out = layout_from(offsets, places);
    return true;
}
