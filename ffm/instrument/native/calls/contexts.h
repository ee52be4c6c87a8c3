/* The CUDA context in which a call acts. */
#ifndef FFM_CONTEXTS_H
#define FFM_CONTEXTS_H

#include <stdbool.h>
#include <stdint.h>

#include "catalogue.h"
#include "records.h"

enum { FFM_CONTEXTS = 256 };

/* The calling thread's context, numbered in order of first use; all after FFM_CONTEXTS - 1 share that number. */
uint32_t ffm_context_number(void);

/* The context that a synchronization waits for: the one that its arguments, which are filled in, name, or else the
 * thread's. */
uint32_t ffm_context_of(const ffm_function *function, const ffm_operation *operation);

/* The context in which a recorded operation acted. */
static inline uint32_t ffm_context_recorded(const ffm_operation *operation)
{
    return operation->flags >> FFM_OPERATION_CONTEXT_SHIFT;
}

/* Provide the driver's own queries, called without their hooks, or NULL: cuCtxGetCurrent, without which all are number
 * 0; cuCtxGetDevice, cuDeviceGetUuid and cuDeviceGetAttribute, which say what is recorded of each context at its first
 * use. */
void ffm_contexts_ask(void *current, void *device, void *uuid, void *attribute);

/* Whether the driver has more than one device, or does not say. */
bool ffm_devices_several(void);

/* Whether a call gives out a context, which it makes if there is none. */
bool ffm_context_made(const ffm_function *function);

/* Whether a call may destroy a context, and all memory allocated in it. */
bool ffm_context_ends(const ffm_function *function);

/* In a forked child, where a thread that no longer exists may have held the lock. */
void ffm_contexts_after_fork(void);

#endif
