/* The meaning of a driver call's arguments, by the catalogue. */
#ifndef FFM_ARGUMENTS_H
#define FFM_ARGUMENTS_H

#include "catalogue.h"
#include "records.h"

/* Fill in what is known before the call: addresses, bytes, stream, handle, which sides are host memory. */
void ffm_arguments_before(const ffm_function *function, const uint64_t *arguments, ffm_operation *operation);

/* Fill in what the call returned through its pointers. */
void ffm_arguments_after(const ffm_function *function, const uint64_t *arguments, ffm_operation *operation);

#endif
