/* The driver's own name of a kernel. */
#ifndef FFM_KERNEL_NAME_H
#define FFM_KERNEL_NAME_H

#include <stdint.h>

/* Provide the driver's own queries: cuFuncGetName and cuKernelGetName, which it has from CUDA 12.3 on; NULL if it has
 * none. */
void ffm_kernel_name_ask(void *of_function, void *of_kernel);

/* Of a CUfunction or CUkernel; NULL if the driver does not tell. It stays where it is as long as its code is loaded. */
const char *ffm_name_of_kernel(uint64_t handle);

#endif
