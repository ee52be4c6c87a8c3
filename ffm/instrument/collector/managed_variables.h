/* Variables of the program that are managed (`__managed__`): kernels reach them by name, through no argument, and the
 * CPU by their address. */
#ifndef FFM_MANAGED_VARIABLES_H
#define FFM_MANAGED_VARIABLES_H

#include "catalogue.h"
#include "records.h"

/* Note one as a block once the program, or its runtime, has asked for its address; call after each call. */
void ffm_managed_variables_note(const ffm_function *function, const uint64_t *arguments,
                                const ffm_operation *operation);

#endif
