/* What Frida's Interceptor calls in the driver functions that it is attached to. */
#ifndef FFM_CALLBACKS_H
#define FFM_CALLBACKS_H

#include "export.h"

/* Both forms of cuGetProcAddress. */
FFM_EXPORT void ffm_collector_entry_enter(void *invocation);
FFM_EXPORT void ffm_collector_entry_leave(void *invocation);

/* The driver's internal wait functions, where there is no room for the wrappers of collector.h. */
FFM_EXPORT void ffm_collector_wait_enter(void *invocation);
FFM_EXPORT void ffm_collector_wait_leave(void *invocation);

/* Driver functions that cannot be replaced. */
FFM_EXPORT void ffm_collector_call_enter(void *invocation);
FFM_EXPORT void ffm_collector_call_leave(void *invocation);

#endif
