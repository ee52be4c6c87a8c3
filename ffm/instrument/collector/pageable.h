/* GPUs that use the program's ordinary memory by its address, through the page tables of the CPU (heterogeneous memory
 * management, or address translation services): CUDA C++ Programming Guide, "Unified Memory on devices with full CUDA
 * Unified Memory support".
 *
 * Such accesses heed the CPU's page protection, and where they go is not known: a kernel that is given an address can
 * follow any pointer from there. */
#ifndef FFM_PAGEABLE_H
#define FFM_PAGEABLE_H

#include <stdbool.h>
#include <stdint.h>

/* The driver's own answer about a device: cuDeviceGetAttribute, called without its hook; NULL where it has none. */
void ffm_pageable_ask(void *device_attribute);

/* No kernel of the program uses ordinary memory, whatever its parameters look like: the user says so. */
void ffm_pageable_rule_out(void);

/* Whether any GPU uses ordinary memory. Asked once; call when the program has initialised the driver. */
bool ffm_pageable_used(void);

/* Whether a parameter of a kernel can be the address of ordinary memory, and there is a GPU that uses it. What lies
 * between the members of a structure is often the rest of an address: where that leads to memory that may not be read
 * it is none. */
bool ffm_pageable_holds(uint64_t word);

#endif
