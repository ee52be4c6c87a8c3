/* The memory of other processes, or the program's own, as a file: what is used there is not seen where it happens. */
#ifndef FFM_NEIGHBOURS_H
#define FFM_NEIGHBOURS_H

#include <stdbool.h>
#include <stdint.h>

/* Before a system call: record whose memory it uses, or gives access to. True if it is the calling process's own. */
bool ffm_neighbours_before(uint64_t number, const uint64_t *arguments);

#endif
