#include "captures.h"

#include <string.h>

static uint32_t under_way;

static bool named(const ffm_function *function, const char *base)
{
    return strncmp(function->name, base, strlen(base)) == 0;
}

void ffm_captures_note(const ffm_function *function, const ffm_operation *operation)
{
    if (function->kind != FFM_KIND_ORDER || operation->result != 0)
        return;
    if (named(function, "cuStreamBeginCapture"))
        __atomic_add_fetch(&under_way, 1, __ATOMIC_RELAXED);
    else if (named(function, "cuStreamEndCapture") && under_way > 0)
        __atomic_sub_fetch(&under_way, 1, __ATOMIC_RELAXED);
}

bool ffm_capturing(void)
{
    return __atomic_load_n(&under_way, __ATOMIC_RELAXED) != 0;
}
