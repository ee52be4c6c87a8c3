/* Calls of the C library that matter to the watch: system calls that read or write memory for the program, that give
 * memory back, and that have to do with signals and clocks.
 *
 * The kernel answers EFAULT for a protected page instead of a fault, so the watch of what a call touches ends before
 * it. */
#ifndef FFM_LIBRARY_CALLS_H
#define FFM_LIBRARY_CALLS_H

#include <stdbool.h>
#include <stdint.h>

/* Name of the function at a place from 0 on, NULL behind the last. */
const char *ffm_library_call_name(uint32_t place);

/* Code to put in its place. */
void *ffm_library_call_wrapper(uint32_t place);

/* `original` runs the function without the hook. Bind before the program can enter the wrapper, or right after. */
void ffm_library_call_bind(uint32_t place, void *original);

/* Whether it was, here or in the process this one was forked from. */
bool ffm_library_call_is_bound(uint32_t place);

#endif
