/* System calls that wait under a signal mask which the program gives them. Its handlers run under that mask, and their
 * own system calls raise SIGSYS. So the kernel gets masks that leave out the signals of the watch. */
#ifndef FFM_MASKED_CALLS_H
#define FFM_MASKED_CALLS_H

#include <stdbool.h>
#include <stdint.h>

/* Whether a system call takes such a mask. */
bool ffm_masked_call_is(uint64_t number);

/* Make such a call with a lenient mask. Returns the kernel's result. */
int64_t ffm_masked_call(uint64_t number, const uint64_t *arguments);

#endif
