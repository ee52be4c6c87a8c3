/* Decides what to do about each driver call of the program. */
#ifndef FFM_REMEDY_DISPATCH_H
#define FFM_REMEDY_DISPATCH_H

#include <stdbool.h>
#include <stdint.h>

/* The ffm_call_handler of corrections (wrappers.h). */
uint64_t ffm_call(uint32_t index, const uint64_t *arguments, const uint64_t *frame);

/* Whether the calling thread uses the driver, but is not in a driver call now. */
bool ffm_dispatch_between_calls(void);

/* Choose the handler of each function. */
void ffm_dispatch_open(void);

#endif
