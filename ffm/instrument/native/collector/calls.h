/* Driver calls as they happen: the hot path of stages 2 to 4. */
#ifndef FFM_CALLS_H
#define FFM_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "thread.h"

/* Run the function with the program's arguments, and record it unless it is part of another call: the ffm_call_handler
 * of the collector (wrappers.h). */
uint64_t ffm_call(uint32_t index, const uint64_t *arguments, const uint64_t *frame);

/* Record an operation of the calling thread. False if there is no room, or the recording is finished. */
bool ffm_record_operation(const ffm_operation *operation, ffm_thread *thread);

/* Select what to do around calls, by mode. */
void ffm_call_set_mode(uint32_t mode);
uint32_t ffm_call_mode(void);

#endif
