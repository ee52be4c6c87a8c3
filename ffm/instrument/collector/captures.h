/* Whether work is being captured into a graph: CUDA then forbids what the collector would ask of the driver. */
#ifndef FFM_CAPTURES_H
#define FFM_CAPTURES_H

#include <stdbool.h>

#include "catalogue.h"
#include "records.h"

/* Note the start and end of captures; call after each call. */
void ffm_captures_note(const ffm_function *function, const ffm_operation *operation);

/* Whether any thread of the process captures. */
bool ffm_capturing(void);

#endif
