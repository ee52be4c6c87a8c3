/* Device code that is loaded: whether it has variables in the device's memory, which its kernels use without being
 * given their addresses.
 *
 * Constants are none: no kernel writes them. Which variables a source has must not depend on the architecture (CUDA C++
 * Programming Guide, "Restrictions: __CUDA_ARCH__"), so the machine code for one tells of all. */
#ifndef FFM_DEVICE_CODE_H
#define FFM_DEVICE_CODE_H

#include <stdbool.h>

/* Whether it is known that the code has none: machine code, PTX, or a container with machine code that is not
 * compressed. */
bool ffm_device_code_lacks_variables(const void *image);

#endif
