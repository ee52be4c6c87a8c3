/* GPUs that use the program's ordinary memory by its address, through the page tables of the CPU (heterogeneous memory
 * management, or address translation services): CUDA C++ Programming Guide, "Unified Memory on devices with full CUDA
 * Unified Memory support".
 *
 * Such accesses obey the CPU's page protection, and where they go is unknown: a kernel that receives an address can
 * follow any pointer from there. */
#ifndef FFM_PAGEABLE_H
#define FFM_PAGEABLE_H

#include <stdbool.h>
#include <stdint.h>

/* Provide the driver's own query about a device: cuDeviceGetAttribute, called without its hook; NULL if it has none. */
void ffm_pageable_ask(void *device_attribute);

/* The user says that no kernel of the program uses ordinary memory, whatever its parameters look like. */
void ffm_pageable_rule_out(void);

/* Whether any GPU uses ordinary memory. Determined once; call after the program has initialized the driver. */
bool ffm_pageable_used(void);

/* Whether a word can be the address of ordinary memory, and some GPU uses such memory. A word that points to unreadable
 * memory does not count as an address. */
bool ffm_pageable_holds(uint64_t word);

#endif
