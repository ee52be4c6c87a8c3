#include "blocks.h"

#include <pthread.h>
#include <stddef.h>
#include <sys/mman.h>

enum { CAPACITY = 1 << 16 };

typedef struct {
    uint64_t start, bytes;
    bool own_pages; /* else the program's own memory, registered */
} block;

static struct {
    pthread_mutex_t lock;
    block *table;
    uint32_t count;
} blocks = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool of_host(const ffm_function *function)
{
    return function->memory == FFM_MEMORY_PINNED || function->memory == FFM_MEMORY_MANAGED ||
           function->memory == FFM_MEMORY_REGISTERED;
}

void ffm_blocks_note(const ffm_function *function, const ffm_operation *operation)
{
    if (function->kind != FFM_KIND_ALLOCATION || !of_host(function) || operation->result != 0)
        return;
    pthread_mutex_lock(&blocks.lock);
    if (blocks.table == NULL) {
        void *pages =
            mmap(NULL, CAPACITY * sizeof *blocks.table, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        blocks.table = pages == MAP_FAILED ? NULL : pages;
    }
    if (blocks.table != NULL && blocks.count < CAPACITY)
        blocks.table[blocks.count++] =
            (block){operation->destination, operation->bytes, function->memory != FFM_MEMORY_REGISTERED};
    pthread_mutex_unlock(&blocks.lock);
}

uint64_t ffm_blocks_remove(uint64_t start)
{
    uint64_t bytes = 0;
    pthread_mutex_lock(&blocks.lock);
    for (uint32_t i = blocks.count; i > 0 && bytes == 0; i--) {
        if (blocks.table[i - 1].start != start)
            continue;
        bytes = blocks.table[i - 1].bytes;
        blocks.table[i - 1] = blocks.table[--blocks.count];
    }
    pthread_mutex_unlock(&blocks.lock);
    return bytes;
}

static bool hold(uint64_t address, bool own_pages_only)
{
    bool found = false;
    pthread_mutex_lock(&blocks.lock);
    for (uint32_t i = 0; i < blocks.count && !found; i++)
        found =
            address - blocks.table[i].start < blocks.table[i].bytes && (blocks.table[i].own_pages || !own_pages_only);
    pthread_mutex_unlock(&blocks.lock);
    return found;
}

bool ffm_blocks_hold(uint64_t address)
{
    return hold(address, false);
}

bool ffm_blocks_own_pages(uint64_t address)
{
    return hold(address, true);
}
