/* Managed variables of the program (`__managed__`): kernels access them by name, not through an argument, and the CPU
 * by their address. */
#ifndef FFM_MANAGED_VARIABLES_H
#define FFM_MANAGED_VARIABLES_H

#include "catalogue.h"
#include "records.h"

/* Note one as a block once the program, or its runtime, has requested its address; call after each call. */
void ffm_managed_variables_note(const ffm_function *function, const uint64_t *arguments,
                                const ffm_operation *operation);

#endif
