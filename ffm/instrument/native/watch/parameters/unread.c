#include "unread.h"

#include <stddef.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "code_image.h"
#include "plan_file.h"

static const ffm_unread *unread; /* in the order of names and places */
static uint32_t count;

static int compare(const ffm_unread *one, XXH128_hash_t name)
{
    const XXH128_hash_t own = {.high64 = one->name_high, .low64 = one->name_low};
    return XXH128_cmp(&own, &name);
}

bool ffm_unread_open(const char *path)
{
    const ffm_plan_kind kind = {"FFMUNREA", FFM_VERSION, sizeof(ffm_plan_header), sizeof(ffm_unread)};
    const ffm_plan_header *header = ffm_plan_file_map(path, &kind);
    if (header == NULL)
        return false;
    unread = (const ffm_unread *)(header + 1);
    count = header->count;
    for (uint32_t place = 1; place < count; place++) {
        const XXH128_hash_t name = {.high64 = unread[place].name_high, .low64 = unread[place].name_low};
        if (compare(&unread[place - 1], name) > 0)
            return false;
    }
    return true;
}

/* The place of the first of a name. */
static uint32_t first_of(XXH128_hash_t name)
{
    uint32_t low = 0, high = count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (compare(&unread[middle], name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool ffm_unread_holds(const char *kernel, uint64_t offset)
{
    if (count == 0)
        return false;
    const XXH128_hash_t name = XXH3_128bits(kernel, strlen(kernel));
    for (uint32_t place = first_of(name); place < count && compare(&unread[place], name) == 0; place++)
        if (unread[place].begin < offset + FFM_ADDRESS_BYTES && offset < unread[place].end)
            return true;
    return false;
}
