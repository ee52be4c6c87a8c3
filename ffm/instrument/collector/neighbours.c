#include "neighbours.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "modules.h"

enum { PAGE = 4096 };

/* glibc's arenas of other threads than the first lie in heaps aligned to this size (malloc/arena.c, HEAP_MAX_SIZE). */
static const uint64_t ARENA_HEAP = (uint64_t)64 << 20;

/* Start of the heap that grows by brk; it never moves. */
static uint64_t heap_start(void)
{
    static uint64_t start;
    if (start != 0)
        return start;
    FILE *maps = fopen("/proc/self/maps", "re");
    if (maps == NULL)
        return 0;
    char line[512];
    while (fgets(line, sizeof line, maps) != NULL) {
        unsigned long from;
        if (strstr(line, "[heap]") != NULL && sscanf(line, "%lx-", &from) == 1) {
            start = from;
            break;
        }
    }
    fclose(maps);
    return start;
}

static bool in_heap(uint64_t address)
{
    uint64_t start = heap_start();
    return start != 0 && address >= start && address < (uint64_t)sbrk(0);
}

/* The head of an arena's heap (malloc/arena.c, heap_info), read without faulting where there is none. */
static bool in_arena(uint64_t address)
{
    struct {
        uint64_t arena, previous, bytes, writable;
    } head;
    uint64_t base = address & ~(ARENA_HEAP - 1);
    struct iovec here = {&head, sizeof head};
    struct iovec there = {(void *)base, sizeof head};
    if (process_vm_readv(getpid(), &here, 1, &there, 1, 0) != (ssize_t)sizeof head)
        return false;
    return head.arena != 0 && head.bytes >= PAGE && head.bytes <= ARENA_HEAP && head.writable >= head.bytes &&
           head.writable <= ARENA_HEAP && address < base + head.writable;
}

static bool shared(uint64_t page)
{
    return in_heap(page) || ffm_module_of(page).number != FFM_NO_MODULE || in_arena(page);
}

bool ffm_neighbours_at(uint64_t start, uint64_t end)
{
    return (start % PAGE != 0 && shared(start & ~(uint64_t)(PAGE - 1))) ||
           (end % PAGE != 0 && shared(end & ~(uint64_t)(PAGE - 1)));
}
