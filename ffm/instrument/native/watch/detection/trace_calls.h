/* What the agent and the translated program call for the trace watch. */
#ifndef FFM_TRACE_CALLS_H
#define FFM_TRACE_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "export.h"

/* The trace watch. `follow` makes Stalker follow the calling thread, `unfollow` ends that. `original` is pthread_create
 * without its hook, or NULL if it was already hooked. Returns the replacement for pthread_create, or NULL if it is
 * already in place. */
FFM_EXPORT void ffm_collector_trace_open(void *follow, void *unfollow, void *original);
FFM_EXPORT void *ffm_collector_trace_create(void);

/* The same for __call_tls_dtors, which the C library calls when a thread ends, and in exit. */
FFM_EXPORT void *ffm_collector_trace_end(void);
FFM_EXPORT void ffm_collector_trace_bind_end(void *original);

/* What ends the program before it forbids that memory becomes executable; it gets the address of the instruction. */
FFM_EXPORT void ffm_collector_trace_when_forbidden(void *end);

/* What the translator asks about an instruction: if it has a mask register, the elements and masks of its `ffm_lanes`.
 * False, and nothing is changed, if it has none or is not known. */
FFM_EXPORT bool ffm_collector_trace_masks(const uint8_t *code, void *lanes);

/* What the translated program calls (see ffm/instrument/trace_translator.c). The registers are Frida's GumCpuContext.
 */
FFM_EXPORT void ffm_collector_trace_access(const void *registers, const void *operand);
FFM_EXPORT void ffm_collector_trace_lanes(const void *registers, const void *lanes);
FFM_EXPORT void ffm_collector_trace_system_call(const void *registers, const void *nothing);
FFM_EXPORT void ffm_collector_trace_counter(const void *registers, const void *nothing);

/* Code that changes (see trace_code.h): how often code of files was replaced, how often when the calling thread's
 * translation began, whether code at an address may change without that, and where a block that is out of date goes. */
extern FFM_EXPORT uint64_t ffm_collector_trace_replaced;
FFM_EXPORT uint64_t ffm_collector_trace_seen(void);
FFM_EXPORT bool ffm_collector_trace_changes(uint64_t address);
FFM_EXPORT void ffm_collector_trace_anew(void);

/* Whether an instruction belongs to the instruments: the translator leaves those unchanged. */
FFM_EXPORT bool ffm_collector_trace_skips(uint64_t instruction);

#endif
