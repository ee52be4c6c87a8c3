/* Device code that is loaded: whether it has variables in the device's memory, which its kernels use without being
 * given their addresses.
 *
 * Constants are none: no kernel writes them. Which variables a source has must not depend on the architecture (CUDA C++
 * Programming Guide, "Restrictions: __CUDA_ARCH__"), so the machine code for one tells of all. */
#ifndef FFM_DEVICE_CODE_H
#define FFM_DEVICE_CODE_H

#include <stdint.h>

#define FFM_CODE_UNKNOWN UINT64_MAX

/* How many bytes of variables the code has, of machine code, PTX without any, or a container with machine code that is
 * not compressed; FFM_CODE_UNKNOWN for others. */
uint64_t ffm_device_code_variables(const void *image);

#endif
