/* Which words of their parameters kernels do not use as addresses, as a stage found in the PTX of files, or as the
 * machine code shows that is loaded. */
#ifndef FFM_UNREAD_H
#define FFM_UNREAD_H

#include <stdbool.h>
#include <stdint.h>

/* False if the file cannot be read, or is not sound. */
bool ffm_unread_open(const char *path);

/* Whether a kernel cannot use a word so many bytes behind the start of its parameters as an address, since it never
 * reads some of the bytes that make one, or only calculates with them. The driver is asked for the kernel's name. */
bool ffm_unread_holds(uint64_t kernel, uint64_t offset, uint64_t word);

#endif
