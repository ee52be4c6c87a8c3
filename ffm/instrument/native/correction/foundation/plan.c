#include "plan.h"

#include <string.h>

#include "catalogue.h"
#include "plan_file.h"
#include "stacks.h"

/* As many as stacks.c numbers. */
enum { STACKS = 1 << 17, UNSEEN = 0, NOT_PLANNED = 1, FIRST = 2 };

static const ffm_remedy_plan *plan;
static const ffm_remedy_site *sites;
static uint32_t count;
static bool planned_functions[FFM_FUNCTION_COUNT];

/* By stack: FIRST plus the index of the first site with its key. */
static uint32_t known[STACKS];

static const uint32_t actions = FFM_REMEDY_POOL_ALLOCATION | FFM_REMEDY_POOL_FREE | FFM_REMEDY_SKIP |
                                FFM_REMEDY_ASYNCHRONOUS | FFM_REMEDY_REUSE | FFM_REMEDY_NO_WAIT;

/* Others index by a site's numbers, and sites are searched by key. */
static bool sites_are_sound(const ffm_remedy_site *some, uint32_t number)
{
    for (uint32_t i = 0; i < number; i++)
        if (some[i].function >= FFM_FUNCTION_COUNT || some[i].unit >= number || (some[i].actions & ~actions) != 0 ||
            (i > 0 && memcmp(some[i - 1].key, some[i].key, FFM_KEY_BYTES) > 0))
            return false;
    return number > 0;
}

bool ffm_plan_open(const char *path)
{
    const ffm_plan_kind kind = {"FFMSITES", FFM_REMEDY_VERSION, sizeof *plan, sizeof *sites};
    const ffm_remedy_plan *mapped = (const ffm_remedy_plan *)ffm_plan_file_map(path, &kind);
    if (mapped == NULL || !sites_are_sound((const ffm_remedy_site *)(mapped + 1), mapped->sites))
        return false;
    plan = mapped;
    sites = (const ffm_remedy_site *)(plan + 1);
    count = plan->sites;
    for (uint32_t i = 0; i < count; i++)
        planned_functions[sites[i].function] = true;
    return true;
}

uint32_t ffm_plan_sites(void)
{
    return count;
}

size_t ffm_plan_memory(void)
{
    return plan->memory;
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
