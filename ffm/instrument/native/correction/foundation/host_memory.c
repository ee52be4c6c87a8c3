#include "host_memory.h"

#include <string.h>

#include "blocks.h"

/* CU_MEMHOSTALLOC_DEVICEMAP and CU_MEMHOSTREGISTER_DEVICEMAP of cuda.h. */
enum { DEVICE_MAP = 2 };

enum { LARGEST_TABLE = 1 << 16 };

static uint32_t blocks, open_blocks;

void ffm_host_memory_allocated(const ffm_function *function, const uint64_t *arguments, const ffm_operation *operation)
{
    if (function->memory != FFM_MEMORY_PINNED && function->memory != FFM_MEMORY_REGISTERED &&
        function->memory != FFM_MEMORY_MANAGED)
        return;
    ffm_blocks_note(function, operation);
    __atomic_add_fetch(&blocks, 1, __ATOMIC_RELAXED);
    /* (…, bytes, flags): cuMemHostAlloc and cuMemHostRegister; cuMemAllocHost has no flags. */
    bool mapped = function->arity == 3 && function->memory != FFM_MEMORY_MANAGED && (arguments[2] & DEVICE_MAP);
    if (mapped || function->memory == FFM_MEMORY_MANAGED)
        ffm_host_memory_mapped();
}

void ffm_host_memory_freed(uint64_t address)
{
    if (ffm_host_memory_any())
        ffm_blocks_remove(address);
}

void ffm_host_memory_mapped(void)
{
    __atomic_add_fetch(&open_blocks, 1, __ATOMIC_RELAXED);
}

bool ffm_host_memory_open(void)
{
    return __atomic_load_n(&open_blocks, __ATOMIC_RELAXED) > 0 || !ffm_blocks_complete();
}

bool ffm_host_memory_named_in(const void *memory, size_t bytes)
{
    for (size_t at = 0; at + sizeof(uint64_t) <= bytes; at += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, (const char *)memory + at, sizeof word);
        uint32_t places[FFM_BLOCKS_NAMED];
        if (ffm_blocks_named(word, places) > 0)
            return true;
    }
    return false;
}

void ffm_host_memory_sent(const void *memory, size_t bytes)
{
    if (memory != NULL && bytes <= LARGEST_TABLE && ffm_host_memory_any() && !ffm_host_memory_open() &&
        ffm_host_memory_named_in(memory, bytes))
        ffm_host_memory_mapped();
}

bool ffm_host_memory_any(void)
{
    return __atomic_load_n(&blocks, __ATOMIC_RELAXED) > 0;
}

bool ffm_host_memory_holds(uint64_t address)
{
    return ffm_host_memory_any() && ffm_blocks_hold(address);
}

void ffm_host_memory_after_fork(void)
{
    blocks = open_blocks = 0;
}
