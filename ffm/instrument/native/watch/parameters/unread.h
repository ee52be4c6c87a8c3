/* Which words of their parameters kernels do not use as addresses: from the PTX of files, which a stage has read, or
 * from the loaded machine code. */
#ifndef FFM_UNREAD_H
#define FFM_UNREAD_H

#include <stdbool.h>
#include <stdint.h>

/* False if the file cannot be read, or is not sound. */
bool ffm_unread_open(const char *path);

/* Whether a kernel cannot use the word at an offset from the start of its parameters as an address, because it never
 * reads some of the bytes that make one, or only calculates with them. The driver is asked for the kernel's name. */
bool ffm_unread_holds(uint64_t kernel, uint64_t offset, uint64_t word);

#endif
