/* From the frames of a captured stack to its number. */
#ifndef FFM_NUMBERED_STACKS_H
#define FFM_NUMBERED_STACKS_H

#include <stdbool.h>
#include <stdint.h>

/* Number of the calling thread's stack, whose native frames are given, innermost first, with the function that is
 * called from there, or NULL. Sets *truncated if frames had to be left out. */
uint32_t ffm_stack_intern(const uint64_t *frames, uint32_t depth, const char *function, bool *truncated);

#endif
