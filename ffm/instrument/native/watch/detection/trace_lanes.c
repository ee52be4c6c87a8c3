#include <string.h>

#include "accesses.h"
#include "clock.h"
#include "invocation.h"
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

/* Whatever is watched may be accessed. */
static void lose(void)
{
    const uint64_t now = ffm_now();
    ffm_ranges_lock();
    for (uint32_t i = ffm_ranges_count(); i > 0; i--)
        if (ffm_ranges_at(i - 1)->state == FFM_RANGE_ARMED)
            ffm_access_lost(i - 1, now);
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
    for (uint32_t i = 0; i < lanes->count; i++) {
        ffm_operand element = lanes->element;
        if (extended(mask + (size_t)i * element.bytes, element.bytes) >= 0)
            continue;
        if (lanes->index_bytes == 0)
            element.displacement += i * element.bytes;
        else
            element.displacement +=
                extended(index + (size_t)i * lanes->index_bytes, lanes->index_bytes) * element.scale;
        ffm_collector_trace_access(&registers, &element);
    }
}
