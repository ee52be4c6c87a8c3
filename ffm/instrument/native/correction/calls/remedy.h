/* What the agent calls: the collector's interface (collector/collector.h) under other names. */
#ifndef FFM_REMEDY_H
#define FFM_REMEDY_H

#include <stdbool.h>
#include <stdint.h>

#include "export.h"

/* Start correcting according to a plan (an ffm_remedy_plan); counters go into `folder`. `mode` is 0 or
 * FFM_FOLLOW_CLOCKS. Returns 0, or a negative number: -1 if nothing can be written into the folder, -2 if the plan is
 * not sound. */
FFM_EXPORT int ffm_remedy_open(const char *folder, uint32_t mode, const char *plan);

/* Replacement code for a driver function, by its index in the catalogue, or in extra_functions.def after that. */
FFM_EXPORT void *ffm_remedy_wrapper(uint32_t function);

/* `original` runs the function without the hook; `address` is where it was. The two are equal if the function could not
 * be replaced: then nothing is corrected. */
FFM_EXPORT void ffm_remedy_bind(uint32_t function, void *address, void *original);
FFM_EXPORT bool ffm_remedy_is_bound(const void *address);
FFM_EXPORT void ffm_remedy_modules_changed(void);

/* Where code of the driver (`driver`), or of the instruments, was loaded. */
FFM_EXPORT void ffm_remedy_foreign(void *start, uint64_t bytes, bool driver);
FFM_EXPORT void ffm_remedy_instrument(const void *start, uint64_t bytes);

/* As the collector's functions of these names: in the mode that needs them, those that read clocks. */
FFM_EXPORT const char *ffm_remedy_followed_name(uint32_t mode, uint32_t place);
FFM_EXPORT void *ffm_remedy_followed_wrapper(uint32_t mode, uint32_t place);
FFM_EXPORT void ffm_remedy_followed_bind(uint32_t mode, uint32_t place, void *original);

/* The process has a Python interpreter; stacks are then matched including its frames. */
FFM_EXPORT void ffm_remedy_python(const void *thread_state, const void *runtime, uint32_t version, bool dedicated);

/* Callbacks of Interceptor.attach; they do nothing. */
FFM_EXPORT void ffm_remedy_call_enter(void *invocation);
FFM_EXPORT void ffm_remedy_call_leave(void *invocation);

#endif
