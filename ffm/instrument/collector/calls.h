/* Driver calls as they happen: the hot path of stages 2 to 4. */
#ifndef FFM_CALLS_H
#define FFM_CALLS_H

#include <stdint.h>

#include "catalogue.h"

enum { FFM_MAX_ARGUMENTS = 12 };

/* Run the function with the program's arguments, and record it unless it is part of another call. `arguments` has
 * room for six, or for FFM_MAX_ARGUMENTS where the function takes more. Called by the wrappers alone: the stack is
 * taken from their caller on. */
uint64_t ffm_call(uint32_t index, const uint64_t *arguments);

/* The function without its hook; NULL where it is not hooked. */
void *ffm_call_original(uint32_t index);

/* Where the function was, and the code that runs it without the hook. */
void ffm_call_bind(uint32_t index, const void *address, void *original);
const void *ffm_call_address(uint32_t index);

/* The same for a call by its exact name; NULL where the driver has no such function or it is not hooked. */
void *ffm_call_original_named(const char *name);

/* What to do around calls, by mode. */
void ffm_call_set_mode(uint32_t mode);
uint32_t ffm_call_mode(void);

#endif
