/* The functions that replace the driver functions. */
#ifndef FFM_WRAPPERS_H
#define FFM_WRAPPERS_H

#include <stdint.h>

enum { FFM_MAX_ARGUMENTS = 16 };

/* Runs in place of a function of the catalogue, and returns what the program receives. `arguments` has six words, or
 * FFM_MAX_ARGUMENTS if the function takes more. `frame` is that of the function below (stacks.h): its caller is the
 * program. */
typedef uint64_t (*ffm_call_handler)(uint32_t index, const uint64_t *arguments, const uint64_t *frame);

/* Lead all calls of the functions below to the handler. Set it before the first is in place. */
void ffm_wrappers_lead_to(ffm_call_handler handler);

/* Code for a function of the catalogue; NULL for an index out of range. */
void *ffm_wrapper(uint32_t index);

#endif
