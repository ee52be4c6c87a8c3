#include "own_pages.h"

#include <dlfcn.h>

typedef void (*noting)(uint64_t);
typedef bool (*asking)(const void *);
typedef void (*freeing)(void *);
typedef void (*telling)(void (*)(void *, size_t));

static struct {
    noting used, beside; /* all NULL without the library */
    asking holds;
    freeing free;
} library;

void ffm_own_pages_open(void (*freed)(void *block, size_t bytes))
{
    const telling tell = (telling)(uintptr_t)dlsym(RTLD_DEFAULT, "ffm_result_blocks_tell");
    if (tell == NULL)
        return;
    library.free = (freeing)(uintptr_t)dlsym(RTLD_DEFAULT, "ffm_slab_free");
    library.holds = (asking)(uintptr_t)dlsym(RTLD_DEFAULT, "ffm_slab_holds");
    library.used = (noting)(uintptr_t)dlsym(RTLD_DEFAULT, "ffm_result_blocks_used");
    library.beside = (noting)(uintptr_t)dlsym(RTLD_DEFAULT, "ffm_result_blocks_beside");
    tell(freed);
}

bool ffm_own_pages_free(void *block)
{
    if (library.holds == NULL || !library.holds(block))
        return false;
    library.free(block);
    return true;
}

void ffm_own_pages_used(const ffm_range *range)
{
    if (library.used != NULL && range->download)
        library.used(range->box.address);
}

void ffm_own_pages_beside(const ffm_page *page)
{
    if (library.beside == NULL)
        return;
    const ffm_nearby nearby = ffm_ranges_nearby(page->start, page->start + page->bytes);
    for (uint32_t i = 0; i < nearby.count; i++) {
        const ffm_range *range = ffm_ranges_at(ffm_nearby_place(&nearby, i));
        if (range->download && ffm_range_shares_page(range, page->start, page->start + page->bytes))
            library.beside(range->start);
    }
}
