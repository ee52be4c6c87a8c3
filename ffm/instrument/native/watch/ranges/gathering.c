#include "gathering.h"

/* Pages in a row, and some that the kernel refused. */
static struct {
    bool on;
    uint64_t first, last;
    ffm_page refused;
} gathered;

bool ffm_gathering(void)
{
    return gathered.on;
}

static void change_gathered(ffm_page_change change)
{
    if (gathered.first < gathered.last && change(gathered.first, gathered.last) != 0)
        gathered.refused = (ffm_page){.start = gathered.first, .bytes = gathered.last - gathered.first};
}

int64_t ffm_gathering_change(ffm_page_change change, uint64_t first, uint64_t last)
{
    if (!gathered.on)
        return change(first, last);
    if (last < gathered.first || first > gathered.last) {
        change_gathered(change);
        gathered.first = first;
        gathered.last = last;
    }
    gathered.first = first < gathered.first ? first : gathered.first;
    gathered.last = last > gathered.last ? last : gathered.last;
    return 0;
}

void ffm_gathering_begin(void)
{
    gathered.on = true;
    gathered.first = gathered.last = gathered.refused.bytes = 0;
}

bool ffm_gathering_end(ffm_page_change change, ffm_page *refused)
{
    gathered.on = false;
    change_gathered(change);
    *refused = gathered.refused;
    return refused->bytes == 0;
}
