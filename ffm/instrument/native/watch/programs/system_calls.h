/* What the kernel reads and writes in the program's memory at a system call, and what memory such a call releases. */
#ifndef FFM_SYSTEM_CALLS_H
#define FFM_SYSTEM_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "stacks.h"

/* The calling thread is about to make a system call: its accesses to watched memory count as the program's, and their
 * pages are open until the call is over. `from` are its registers there. */
void ffm_system_call_before(uint64_t number, const uint64_t *arguments, const ffm_registers *from);
void ffm_system_call_after(void);

/* Whether everything is known that the kernel uses for a call: whatever else lies on the same pages stays untouched. */
bool ffm_system_call_is_known(uint64_t number);

/* The memory that a plain call uses. Such a call does nothing else: nothing to threads, signals, mappings or clocks,
 * and no wait that others should know of. */
typedef struct {
    uint64_t start, bytes;
    bool writing;
} ffm_plain_use;

/* Whether a call is plain. */
bool ffm_system_call_is_plain(uint64_t number, const uint64_t *arguments, ffm_plain_use *use);

/* Another program is about to be started by its path, with arguments and an environment, which the kernel reads. */
void ffm_system_call_starts(uint64_t path, uint64_t arguments, uint64_t environment);

#endif
