/* What the kernel reads and writes in the program's memory at a system call, and what memory such a call releases. */
#ifndef FFM_SYSTEM_CALLS_H
#define FFM_SYSTEM_CALLS_H

#include <stdint.h>

/* The calling thread is about to make a system call: its accesses to watched memory count as the program's, and their
 * pages are open until the call is over. */
void ffm_system_call_before(uint64_t number, const uint64_t *arguments);
void ffm_system_call_after(void);

#endif
