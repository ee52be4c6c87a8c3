#include <string.h>

#include "accesses.h"
#include "clock.h"
#include "invocation.h"
#include "masked.h"
#include "ranges.h"
#include "trace_calls.h"
#include "trace_operand.h"
#include "watched.h"

static int64_t extended(const char *from, uint32_t bytes)
{
    int32_t narrow;
    int64_t wide;
    if (bytes == sizeof wide) {
        memcpy(&wide, from, sizeof wide);
        return wide;
    }
    memcpy(&narrow, from, sizeof narrow);
    return narrow;
}

bool ffm_collector_trace_masks(const uint8_t *code, void *opaque)
{
    ffm_lanes *lanes = opaque;
    ffm_mask mask;
    if (!ffm_mask_of(code, &mask))
        return false;
    lanes->element.bytes = mask.lane;
    lanes->count = mask.count;
    lanes->mask_bits = mask.number;
    lanes->packed = mask.packed;
    return true;
}

static bool selected(const ffm_lanes *lanes, const char *mask, uint32_t i)
{
    uint64_t bits;
    if (lanes->mask_bits == 0)
        return extended(mask + (size_t)i * lanes->element.bytes, lanes->element.bytes) < 0;
    memcpy(&bits, mask, sizeof bits);
    return bits >> i & 1;
}

/* Whatever is watched may be accessed. */
static void lose(void)
{
    const uint64_t now = ffm_now();
    ffm_ranges_lock();
    for (uint32_t i = ffm_ranges_count(); i > 0; i--) {
        if (ffm_ranges_at(i - 1)->state == FFM_RANGE_ARMED)
            ffm_access_lost(i - 1, now);
        else
            ffm_ranges_at(i - 1)->intact = false;
    }
    ffm_ranges_unlock();
}

void ffm_collector_trace_lanes(const void *opaque_registers, const void *opaque_lanes)
{
    gum_cpu_context registers = *(const gum_cpu_context *)opaque_registers;
    const ffm_lanes *lanes = opaque_lanes;
    const char *index = (const char *)registers.rsp, *mask = index + FFM_LANES_MASK;
    if (!ffm_watch_active())
        return;
    if (lanes->count == 0) {
        lose();
        return;
    }
    registers.rsp += FFM_LANES_ROOM;
    for (uint32_t i = 0, before = 0; i < lanes->count; i++) {
        ffm_operand element = lanes->element;
        if (!selected(lanes, mask, i))
            continue;
        if (lanes->index_bytes == 0)
            element.displacement += (lanes->packed ? before++ : i) * element.bytes;
        else
            element.displacement +=
                extended(index + (size_t)i * lanes->index_bytes, lanes->index_bytes) * element.scale;
        ffm_collector_trace_access(&registers, &element);
    }
}
