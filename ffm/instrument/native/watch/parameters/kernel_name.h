/* The driver's own name of a kernel. */
#ifndef FFM_KERNEL_NAME_H
#define FFM_KERNEL_NAME_H

#include <stdint.h>

/* Provide the driver's own queries: cuFuncGetName and cuKernelGetName, which exist from CUDA 12.3 on; NULL if the
 * driver has none. */
void ffm_kernel_name_ask(void *of_function, void *of_kernel);

/* The name of a CUfunction or CUkernel; NULL if the driver does not tell it. It is valid as long as its code is
 * loaded. */
const char *ffm_name_of_kernel(uint64_t handle);

#endif
