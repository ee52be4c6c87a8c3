/* The names of the kernels that are launched (stage 2). */
#ifndef FFM_KERNEL_NAMES_H
#define FFM_KERNEL_NAMES_H

#include <stdbool.h>

#include "catalogue.h"
#include "records.h"

/* Whether calls of this function launch kernels, or unload them. */
static inline bool ffm_kernel_names_concern(const ffm_function *function)
{
    return function->effect == FFM_EFFECT_LAUNCH_KERNEL || function->effect == FFM_EFFECT_UNLOAD_CODE;
}

/* A call of such a function returned: record the name of what it launched, unless that is known. */
void ffm_kernel_names_note(const ffm_function *function, const ffm_operation *operation);

/* In a forked child, after its recording is open. */
void ffm_kernel_names_after_fork(void);

#endif
