/* Filters of system calls that the program gives the kernel (seccomp(2)). */
#ifndef FFM_FILTERS_H
#define FFM_FILTERS_H

#include <stdbool.h>
#include <stdint.h>

/* Whether a filter, the program's struct sock_fprog, lets a system call with these arguments through. True for a filter
 * that the kernel would refuse. */
bool ffm_filter_allows(uint64_t filter, uint64_t number, const uint64_t *arguments);

#endif
