/* Which memory a kernel is given. */
#ifndef FFM_REMEDY_KERNEL_ARGUMENTS_H
#define FFM_REMEDY_KERNEL_ARGUMENTS_H

#include <stdbool.h>

#include "dispatch.h"

/* Whether a launch hands its kernel an address of host memory that the GPU reaches: under unified addressing any pinned
 * memory, without a call that maps it. True where the parameters cannot be known. Drivers before CUDA 12.4 do not tell
 * the parameters of kernels at all; with them the answer is false, and FFM_COUNT(launches_unread) says so. */
bool ffm_kernel_reaches_host(const ffm_program_call *launch);

/* Kernels are gone: their handles may mean others from now on. */
void ffm_kernels_forget(void);
void ffm_kernels_after_fork(void);

/* Deliver late downloads that a launch may touch: what its parameters hold, and where they lie. */
void ffm_kernel_deliver(const ffm_program_call *launch);

#endif
