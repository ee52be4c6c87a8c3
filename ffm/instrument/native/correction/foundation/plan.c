#include "plan.h"

#include <string.h>

#include "catalogue.h"
#include "plan_file.h"
#include "planned.h"

static const ffm_remedy_plan *plan;
static const ffm_remedy_site *sites;
static uint32_t count;
static bool planned_functions[FFM_FUNCTION_COUNT];

static ffm_planned planned; /* by the sites' keys, with which they begin */

static const uint32_t actions = FFM_REMEDY_POOL_ALLOCATION | FFM_REMEDY_POOL_FREE | FFM_REMEDY_SKIP |
                                FFM_REMEDY_ASYNCHRONOUS | FFM_REMEDY_REUSE | FFM_REMEDY_NO_WAIT | FFM_REMEDY_CLOCK;

/* Others index by a site's numbers. */
static bool sites_are_sound(const ffm_remedy_site *some, uint32_t number)
{
    for (uint32_t i = 0; i < number; i++)
        if (some[i].function >= FFM_FUNCTION_COUNT || some[i].unit >= number || (some[i].actions & ~actions) != 0)
            return false;
    return number > 0 && ffm_planned_open(&planned, some, sizeof *some, number);
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

const ffm_remedy_site *ffm_plan_site(uint32_t function, uint32_t stack)
{
    if (stack == 0) /* the number of all stacks beyond the table */
        return NULL;
    const uint32_t place = ffm_planned_place(&planned, stack);
    if (place == FFM_NOT_PLANNED)
        return NULL;
    const uint8_t *key = sites[place].key;
    for (uint32_t i = place; i < count && memcmp(sites[i].key, key, FFM_KEY_BYTES) == 0; i++)
        if (sites[i].function == function)
            return &sites[i];
    return NULL;
}

void ffm_plan_after_fork(void)
{
    ffm_planned_after_fork(&planned);
}
