/* Which words of their parameters kernels do not use as addresses: from the PTX of files, which a stage has read. */
#ifndef FFM_UNREAD_H
#define FFM_UNREAD_H

#include <stdbool.h>
#include <stdint.h>

/* False if the file cannot be read, or is not sound. */
bool ffm_unread_open(const char *path);

/* Whether kernels of this name cannot use the word at an offset from the start of their parameters as an address,
 * because they never read some of the bytes that make one. */
bool ffm_unread_holds(const char *kernel, uint64_t offset);

#endif
