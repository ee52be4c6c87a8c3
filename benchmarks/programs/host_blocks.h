/* Host memory that stays allocated, since a tool that follows host memory looks up where each transfer's lies. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

/* Blocks of the heap of all sizes from 1 KiB to 64 KiB, and one of 64 GiB; none is touched. */
static inline void allocate_host_blocks(long blocks)
{
    static const size_t huge = (size_t)64 << 30;
    void *last = mmap(NULL, huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    for (long block = 0; block < blocks && last != MAP_FAILED && last != NULL; block++)
        last = malloc(1024 * (size_t)(1 + block % 64));
    if (last == MAP_FAILED || last == NULL) {
        perror(program_invocation_short_name);
        exit(1);
    }
}
