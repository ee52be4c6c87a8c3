#include "managed_variables.h"

#include <stdbool.h>
#include <stddef.h>

#include "blocks.h"
#include "boxes.h"

/* Their first arguments receive the address and the size (CUDA Driver API, "Module Management"). */
static bool asks(const ffm_function *function)
{
    return function->effect == FFM_EFFECT_FIND_VARIABLE && function->shape != FFM_SHAPE_NARROW;
}

void ffm_managed_variables_note(const ffm_function *function, const uint64_t *arguments, const ffm_operation *operation)
{
    if (!asks(function) || operation->result != 0 || arguments[0] == 0)
        return;
    const uint64_t address = *(const uint64_t *)arguments[0];
    const size_t *bytes = (const size_t *)arguments[1];
    uint64_t known = 0;
    if (ffm_boxes_managed(address, &known))
        ffm_blocks_add_variable(address, bytes != NULL ? *bytes : known);
}
