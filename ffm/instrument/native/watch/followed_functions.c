#include "followed_functions.h"

#include "clocks.h"
#include "handovers.h"
#include "library_functions.h"
#include "trace_handlers.h"

static ffm_followed *const tables[] = {ffm_clocks, ffm_handovers, ffm_library_functions, ffm_trace_handlers};

ffm_followed *ffm_followed_at(uint32_t place)
{
    for (uint32_t i = 0; i < sizeof tables / sizeof *tables; i++)
        for (ffm_followed *row = tables[i]; row->name != NULL; row++)
            if (place-- == 0)
                return row;
    return NULL;
}
