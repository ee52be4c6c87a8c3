#include "plan.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "catalogue.h"
#include "stacks.h"

/* As many as stacks.c numbers. */
enum { STACKS = 1 << 17, UNSEEN = 0, NOT_PLANNED = 1, FIRST = 2 };

static const ffm_remedy_site *sites;
static uint32_t count;
static bool planned_functions[FFM_FUNCTION_COUNT];

/* By stack: FIRST plus the index of the first site with its key. */
static uint32_t known[STACKS];

bool ffm_plan_open(const char *path)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (file < 0)
        return false;
    bool sound = fstat(file, &status) == 0 && status.st_size > 0 && (size_t)status.st_size % sizeof *sites == 0;
    void *pages = sound ? mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0) : MAP_FAILED;
    close(file);
    if (pages == MAP_FAILED)
        return false;
    sites = pages;
    count = (uint32_t)((size_t)status.st_size / sizeof *sites);
    for (uint32_t i = 0; i < count; i++) {
        if (sites[i].function >= FFM_FUNCTION_COUNT)
            return false;
        planned_functions[sites[i].function] = true;
    }
    return true;
}

uint32_t ffm_plan_sites(void)
{
    return count;
}

uint32_t ffm_plan_number(const ffm_remedy_site *site)
{
    return (uint32_t)(site - sites);
}

bool ffm_plan_has_function(uint32_t function)
{
    return planned_functions[function];
}

static uint32_t find(const uint8_t *key)
{
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (memcmp(sites[middle].key, key, FFM_KEY_BYTES) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && memcmp(sites[low].key, key, FFM_KEY_BYTES) == 0 ? FIRST + low : NOT_PLANNED;
}

const ffm_remedy_site *ffm_plan_site(uint32_t function, uint32_t stack)
{
    if (stack == 0 || stack >= STACKS) /* 0 is also the number of all stacks beyond the table */
        return NULL;
    uint32_t place = __atomic_load_n(&known[stack], __ATOMIC_RELAXED);
    if (__builtin_expect(place == UNSEEN, 0)) {
        place = find(ffm_stack_key(stack));
        __atomic_store_n(&known[stack], place, __ATOMIC_RELAXED);
    }
    if (place == NOT_PLANNED)
        return NULL;
    const uint8_t *key = sites[place - FIRST].key;
    for (uint32_t i = place - FIRST; i < count && memcmp(sites[i].key, key, FFM_KEY_BYTES) == 0; i++)
        if (sites[i].function == function)
            return &sites[i];
    return NULL;
}

void ffm_plan_after_fork(void)
{
    memset(known, 0, sizeof known);
}
