/* Memory of other processes, or the program's own, that is used by system calls or as a file. Such a use is not seen
 * where it happens. */
#ifndef FFM_NEIGHBOURS_H
#define FFM_NEIGHBOURS_H

#include <stdbool.h>
#include <stdint.h>

/* Before a system call: record whose memory it uses, or gives access to. True if it is the calling process's own. */
bool ffm_neighbours_before(uint64_t number, const uint64_t *arguments);

#endif
