/* Driver calls as they happen: the hot path of stages 2 to 4. */
#ifndef FFM_CALLS_H
#define FFM_CALLS_H

#include <stdint.h>

#include "catalogue.h"

enum { FFM_MAX_ARGUMENTS = 12 };

/* Run the function with the program's arguments, and record it unless it is part of another call. `arguments` has room
 * for six, or for FFM_MAX_ARGUMENTS if the function takes more. Only wrappers call this: the stack is captured from
 * their caller on. */
uint64_t ffm_call(uint32_t index, const uint64_t *arguments);

/* The function without its hook; NULL if it is not hooked. */
void *ffm_call_original(uint32_t index);

/* Set where the function was, and the code that runs it without the hook. */
void ffm_call_bind(uint32_t index, const void *address, void *original);
const void *ffm_call_address(uint32_t index);

/* The same for a call by its exact name; NULL if the driver lacks the function or it is not hooked. */
void *ffm_call_original_named(const char *name);

/* Select what to do around calls, by mode. */
void ffm_call_set_mode(uint32_t mode);
uint32_t ffm_call_mode(void);

#endif
