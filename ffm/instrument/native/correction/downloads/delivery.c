#include "delivery.h"

#include "counters.h"

bool ffm_downloads_deliver(uint64_t start, uint64_t end, uint64_t *why)
{
    return ffm_late_busy() && ffm_late_deliver(ffm_page_of(start), ffm_page_after(end), why);
}

void ffm_downloads_deliver_all(uint64_t *why, bool off)
{
    if (off)
        ffm_late_off();
    ffm_downloads_deliver(0, UINT64_MAX - FFM_PAGE, why);
}

void ffm_downloads_before_call(const uint64_t *arguments, int count)
{
    for (int i = 0; i < count && ffm_downloads_pending(); i++)
        ffm_downloads_deliver(arguments[i], arguments[i] + 1, &ffm_counters->deliveries_called);
}
