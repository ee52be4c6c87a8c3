/* Device code that is loaded: whether it has variables in the device's memory, which its kernels use without being
 * given their addresses.
 *
 * Constants do not count: no kernel writes them. Which variables a source has must not depend on the architecture (CUDA
 * C++ Programming Guide, "Restrictions: __CUDA_ARCH__"), so the machine code for one architecture tells about all. */
#ifndef FFM_DEVICE_CODE_H
#define FFM_DEVICE_CODE_H

#include <stdint.h>

#define FFM_CODE_UNKNOWN UINT64_MAX

/* How many bytes of variables the code has, if it is machine code, PTX without variables, or a container with machine
 * code that is not compressed; FFM_CODE_UNKNOWN for other code. */
uint64_t ffm_device_code_variables(const void *image);

#endif
