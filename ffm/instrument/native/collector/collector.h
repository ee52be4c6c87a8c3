/* What the agent calls: the interface between Frida and the collector; callbacks.h has what Frida calls by itself,
 * and trace_calls.h the interface of the trace watch.
 *
 * Order: ffm_collector_arrive while the program is at the gate; ffm_collector_open; then, for each driver function,
 * ffm_collector_bind with the code that calls the original, before any other thread can enter it. */
#ifndef FFM_COLLECTOR_H
#define FFM_COLLECTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "export.h"

/* The agent is in the process, and the program has not started. */
FFM_EXPORT void ffm_collector_arrive(void);

/* Record only a portion of the run (portion.h): its kind, where it begins and ends, every how many iterations, and the
 * name of their marks. Call this before ffm_collector_open. */
FFM_EXPORT void ffm_collector_limit(uint32_t kind, uint64_t from, uint64_t until, uint64_t every, const char *name);

/* Record only the last nanoseconds of what the program does. Call this before ffm_collector_open. */
FFM_EXPORT void ffm_collector_keep(uint64_t nanoseconds);

/* The program, which marks its iterations, begins or ends one of that name. */
FFM_EXPORT void ffm_collector_mark(const char *name, bool begins);

/* Which bytes of their parameters kernels never read: a file of ffm_unread. False if it cannot be read, or is not
 * sound. Call this before ffm_collector_open. */
FFM_EXPORT bool ffm_collector_unread(const char *path);

/* Start recording into `folder`, in a mode of modes.h. `plan` is a file (ffm_plan_header), or NULL. Returns 0, or a
 * negative number: -1 the recording cannot be created, -2 the plan cannot be read or is not sound, -3 no signal
 * handler, -4 system calls cannot be intercepted. */
FFM_EXPORT int ffm_collector_open(const char *folder, uint32_t mode, const char *plan);

/* From now on, nothing is recorded and no hook does anything, until the process ends. Not with FFM_MODE_WATCH. */
FFM_EXPORT void ffm_collector_detach(void);

/* Replacement code for a driver function, by its index in the catalogue. */
FFM_EXPORT void *ffm_collector_wrapper(uint32_t function);

/* `original` runs the function without the hook; `address` is where the function was. */
FFM_EXPORT void ffm_collector_bind(uint32_t function, void *address, void *original);

/* The same for the driver's internal wait functions, by numbers from 0; NULL if there are no more. `address` is where
 * the function is. */
FFM_EXPORT void *ffm_collector_wait_wrapper(uint32_t place);
FFM_EXPORT void ffm_collector_wait_bind(uint32_t place, void *address, void *original);

/* Whether the code at an address was already hooked, in this process or in the one that it was forked from. */
FFM_EXPORT bool ffm_collector_is_bound(const void *address);

/* The process has a Python interpreter: the addresses of its function `PyGILState_GetThisThreadState` and its
 * `_PyRuntime`, its PY_VERSION_HEX, and whether its module is libpython or python itself. From then on stacks include
 * Python frames, if the version is known. */
FFM_EXPORT void ffm_collector_python(const void *thread_state, const void *runtime, uint32_t version, bool dedicated);

/* Functions of the C library to be replaced in a mode (see followed.h): name, replacement (NULL if already in place, or
 * not wanted) and original, by index. The name after the last one is NULL. */
FFM_EXPORT const char *ffm_collector_followed_name(uint32_t mode, uint32_t place);
FFM_EXPORT void *ffm_collector_followed_wrapper(uint32_t mode, uint32_t place);
FFM_EXPORT void ffm_collector_followed_bind(uint32_t mode, uint32_t place, void *original);

/* A function of an interpreter with which scripts read clocks. All other reads of clocks are the interpreter's own. */
FFM_EXPORT void ffm_collector_interpreter_clock(const void *function);

/* The code of such an interpreter or, `for_scripts`, of a module of it with which scripts read clocks. */
FFM_EXPORT void ffm_collector_interpreter_code(const void *first, uint64_t bytes, bool for_scripts);

/* There is an instruction that reads the processor's counter, of `bytes` bytes: its reads are recorded from now on. */
FFM_EXPORT void ffm_collector_counter(void *instruction, uint32_t bytes);

/* Code of the instruments: Frida's, and ours. Call before everything else except ffm_collector_arrive. */
FFM_EXPORT void ffm_collector_instrument(const void *start, uint64_t bytes);

/* Code that is not the program's: the driver, or the instruments. */
FFM_EXPORT void ffm_collector_foreign(void *start, uint64_t bytes, bool driver);

/* Functions of the driver that the collector itself calls, by their purpose in the catalogue (`own_calls`); NULL if the
 * driver lacks one. */
FFM_EXPORT void ffm_collector_ask(void *pointer_attribute, void *device_attribute, void *function_parameter,
                                  void *kernel_parameter, void *current_context, void *context_device,
                                  void *device_uuid, void *function_name, void *kernel_name, void *function_module,
                                  void *kernel_library);

/* The same for streams and graphs. */
FFM_EXPORT void ffm_collector_ask_graphs(void *capturing, void *nodes, void *type, void *copy, void *set, void *kernel,
                                         void *kernel_before_12, void *child, void *kernel_attribute);

/* `found` receives what cuGetProcAddress returns besides the `known` addresses: its arguments, and the address. */
FFM_EXPORT void ffm_collector_entry_points(void *const *known, uint32_t count, void *found);

/* Allocators of the C library to replace for FFM_MODE_HOST, in the same way. */
FFM_EXPORT const char *ffm_collector_allocator_name(uint32_t place);
FFM_EXPORT void *ffm_collector_allocator_wrapper(uint32_t place);
FFM_EXPORT void ffm_collector_allocator_bind(uint32_t place, void *original);
FFM_EXPORT bool ffm_collector_allocator_is_bound(uint32_t place);

/* A module was unloaded. */
FFM_EXPORT void ffm_collector_modules_changed(void);

#endif
