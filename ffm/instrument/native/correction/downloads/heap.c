#include "heap.h"

#include <dlfcn.h>
#include <stddef.h>

#include "allowance.h"
#include "counters.h"
#include "delivery.h"
#include "marks.h"

static const ffm_marks *marks;

static void before_free(uint64_t start, uint64_t end)
{
    ffm_downloads_deliver(start, end, &ffm_counters->deliveries_called);
}

void ffm_heap_open(void)
{
    const ffm_marks *(*find)(void) = (const ffm_marks *(*)(void))(uintptr_t)dlsym(RTLD_DEFAULT, FFM_MARKS);
    if (find == NULL)
        return;
    static ffm_marks_observer observer = {.before_free = before_free};
    observer.peak = &ffm_counters->own_pages_bytes;
    observer.allowed = ffm_allowance_host();
    marks = find();
    marks->observe(&observer);
}

bool ffm_heap_owns(uint64_t first, uint64_t last)
{
    return marks != NULL && marks->own(first, last);
}
