/* The names of the kernels that are launched (stage 2). */
#ifndef FFM_KERNEL_NAMES_H
#define FFM_KERNEL_NAMES_H

#include "catalogue.h"
#include "records.h"

/* Provide the driver's own queries: cuFuncGetName and cuKernelGetName, which it has from CUDA 12.3 on; NULL if it has
 * none. */
void ffm_kernel_names_ask(void *of_function, void *of_kernel);

/* A call of this function returned: record the name of what it launched, unless that is known. */
void ffm_kernel_names_note(const ffm_function *function, const ffm_operation *operation);

/* In a forked child, after its recording is open. */
void ffm_kernel_names_after_fork(void);

#endif
