/* Memory that is locked, reserved, mapped. */
#define _GNU_SOURCE
#include "bad.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

THING(locks_memory)
{
    mlockall(MCL_CURRENT | MCL_FUTURE);
}
THING(unmaps_nothing)
{
    munmap(NULL, 0x10000);
    munmap((void *)0x100000000, 1ul << 32);
}
THING(reserves_much)
{
    mmap(NULL, 1ul << 40, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}
THING(many_mappings)
{
    const size_t pages = 20000;
    char *start = mmap(NULL, pages * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t page = 0; page < pages; page += 2)
        mprotect(start + page * 4096, 4096, PROT_READ);
}
THING(all_mappings)
{
    const size_t pages = 200000;
    char *start = mmap(NULL, pages * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t page = 0; page < pages; page += 2)
        if (mprotect(start + page * 4096, 4096, PROT_READ) != 0)
            break;
}
THING(writable_code)
{
    mprotect((void *)((uintptr_t)&writable_code & ~4095ul), 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
}
THING(moves_break)
{
    if (sbrk(1 << 20) == (void *)-1)
        say("no memory\n");
}
THING(huge_allocation)
{
    printf("%d\n", malloc((size_t)1 << 62) == NULL);
}
