#include "trace_marks.h"

#include <string.h>

#include "protection.h"
#include "ranges.h"
#include "trace_operand.h"

enum { LARGEST_OPERAND = 128, PAGE = 4096, PAGES = FFM_TRACED_PAGES };

uint8_t ffm_collector_trace_pages[PAGES];

static void mark(uint8_t *pages, const ffm_range *range)
{
    uint64_t first = (range->start - LARGEST_OPERAND) / PAGE, last = (range->end - 1) / PAGE;
    if (last - first >= PAGES)
        last = first + PAGES - 1;
    for (uint64_t page = first; page <= last; page++)
        pages[page % PAGES] |= range->writes_only ? FFM_PAGE_WRITTEN : FFM_PAGE_USED;
}

/* Readers take no lock: a page that stays marked is never unmarked in between. */
static void mark_all(void)
{
    static uint8_t pages[PAGES];
    memset(pages, 0, sizeof pages);
    for (uint32_t i = 0; i < ffm_ranges_count(); i++)
        if (ffm_range_is_protected(ffm_ranges_at(i)) && ffm_ranges_at(i)->end > ffm_ranges_at(i)->start)
            mark(pages, ffm_ranges_at(i));
    for (uint32_t i = 0; i < PAGES; i++)
        if (ffm_collector_trace_pages[i] != pages[i])
            __atomic_store_n(&ffm_collector_trace_pages[i], pages[i], __ATOMIC_RELEASE);
}

void ffm_trace_marks_open(void)
{
    ffm_protection_mark_with(mark_all);
}
