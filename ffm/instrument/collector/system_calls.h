/* Calls of the C library in which the kernel reads or writes memory for the program. For a protected page the kernel
 * answers EFAULT, so the watch of what a call touches ends before it. */
#ifndef FFM_SYSTEM_CALLS_H
#define FFM_SYSTEM_CALLS_H

#include <stdint.h>

/* Name of the function at a place from 0 on, NULL behind the last; and code to put in its place. */
const char *ffm_system_call_name(uint32_t place);
void *ffm_system_call_wrapper(uint32_t place);

/* `original` runs the function without the hook; NULL where it was not bound. */
void ffm_system_call_bind(uint32_t place, void *original);
void *ffm_system_call_original(uint32_t place);

#endif
