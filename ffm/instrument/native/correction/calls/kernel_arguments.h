/* The memory that is passed to a kernel. */
#ifndef FFM_REMEDY_KERNEL_ARGUMENTS_H
#define FFM_REMEDY_KERNEL_ARGUMENTS_H

#include <stdbool.h>

#include "program_call.h"

/* Whether a launch passes its kernel an address of host memory that the GPU can access. Under unified addressing this
 * includes all pinned memory, without a call that maps it, and on some GPUs ordinary memory. True if the parameters
 * cannot be determined. Drivers before CUDA 12.4 report no parameters of any kernel; with them the answer is false, and
 * FFM_COUNT(launches_unread) records it. */
bool ffm_kernel_reaches_host(const ffm_program_call *launch);

/* Kernels were unloaded: their handles may mean others from now on. */
void ffm_kernels_forget(void);
void ffm_kernels_after_fork(void);

/* Deliver pending downloads that a launch may touch: where its parameters point, and where they are stored. */
void ffm_kernel_deliver(const ffm_program_call *launch);

#endif
