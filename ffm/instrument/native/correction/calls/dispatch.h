/* Decides what to do about each driver call of the program. */
#ifndef FFM_REMEDY_DISPATCH_H
#define FFM_REMEDY_DISPATCH_H

#include <stdint.h>

/* The ffm_call_handler of corrections (wrappers.h). */
uint64_t ffm_call(uint32_t index, const uint64_t *arguments, const uint64_t *frame);

/* Choose the handler of each function. */
void ffm_dispatch_open(void);

#endif
