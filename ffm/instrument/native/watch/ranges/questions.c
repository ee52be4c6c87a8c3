#include "questions.h"

#include "ranges.h"

bool ffm_ranges_reach(uint64_t start, uint64_t end)
{
    const uint32_t version = ffm_ranges_version();
    const ffm_nearby nearby = ffm_ranges_nearby(start, end);
    for (uint32_t i = 0; i < nearby.count; i++) {
        const ffm_range *range = ffm_ranges_at(ffm_nearby_place(&nearby, i));
        if (range->start < end && start < range->end)
            return true;
    }
    return ffm_ranges_changed(version);
}

bool ffm_ranges_end_behind(uint64_t address)
{
    const uint32_t version = ffm_ranges_version();
    for (uint32_t i = ffm_ranges_count(); i > 0; i--)
        if (ffm_ranges_at(i - 1)->end > address)
            return true;
    return ffm_ranges_changed(version);
}

bool ffm_ranges_overlap(uint64_t start, uint64_t end)
{
    const uint32_t version = ffm_ranges_version();
    const ffm_nearby nearby = ffm_ranges_nearby(start, end);
    for (uint32_t i = 0; i < nearby.count; i++)
        if (ffm_range_shares_page(ffm_ranges_at(ffm_nearby_place(&nearby, i)), start, end))
            return true;
    return ffm_ranges_changed(version);
}

bool ffm_ranges_hide(uint64_t start, uint64_t end)
{
    const uint32_t version = ffm_ranges_version();
    const ffm_nearby nearby = ffm_ranges_nearby(start, end);
    for (uint32_t i = 0; i < nearby.count; i++) {
        const ffm_range *range = ffm_ranges_at(ffm_nearby_place(&nearby, i));
        if (!range->writes_only && ffm_range_shares_page(range, start, end))
            return true;
    }
    return ffm_ranges_changed(version);
}
