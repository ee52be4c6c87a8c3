/* Which host memory a launch can access: a kernel's, or that of all kernels of a graph. */
#ifndef FFM_LAUNCHES_H
#define FFM_LAUNCHES_H

#include <stdbool.h>

#include "catalogue.h"
#include "kernels.h"

/* Examine the parameters of a launch. */
void ffm_launch_scan(ffm_kernel_reach *reach, const ffm_function *function, const uint64_t *arguments);

/* Whether the launch is of a single kernel that can access no host memory. */
bool ffm_launch_stays_on_device(const ffm_function *function, const uint64_t *arguments);

/* The size of the launch's kernel, as in an operation; 0 if it is not of a single kernel. */
uint32_t ffm_launch_size(const ffm_function *function, const uint64_t *arguments);

#endif
