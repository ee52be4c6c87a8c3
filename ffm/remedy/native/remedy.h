/* What the agent calls: the same interface as the collector's (ffm/instrument/collector/collector.h), by other names.
 */
#ifndef FFM_REMEDY_H
#define FFM_REMEDY_H

#include <stdbool.h>
#include <stdint.h>

#define FFM_EXPORT __attribute__((visibility("default")))

/* Start correcting by a plan (an array of ffm_remedy_site); what is counted goes into `folder`. `mode` is unused.
 * Returns 0, or a negative number: -1 nothing can be written into the folder, -2 the plan cannot be read. */
FFM_EXPORT int ffm_remedy_open(const char *folder, uint32_t mode, const char *plan);

/* Code to put in place of a driver function: by its index in the catalogue, or in extra_functions.def after that. */
FFM_EXPORT void *ffm_remedy_wrapper(uint32_t function);

/* `original` runs the function without the hook; `address` is where it was. Both are equal where the function could
 * not be replaced: then nothing is corrected. */
FFM_EXPORT void ffm_remedy_bind(uint32_t function, void *address, void *original);
FFM_EXPORT bool ffm_remedy_is_bound(const void *address);
FFM_EXPORT void ffm_remedy_modules_changed(void);

/* There is a Python interpreter in the process; stacks are then matched with its frames. */
FFM_EXPORT void ffm_remedy_python(const void *thread_state, const void *runtime, uint32_t version, bool dedicated);

/* Callbacks of Interceptor.attach: nothing is done in them. */
FFM_EXPORT void ffm_remedy_wait_enter(void *invocation);
FFM_EXPORT void ffm_remedy_wait_leave(void *invocation);
FFM_EXPORT void ffm_remedy_call_enter(void *invocation);
FFM_EXPORT void ffm_remedy_call_leave(void *invocation);

#endif
