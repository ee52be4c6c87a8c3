#include "gate_jump.h"

#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

enum { BLOCK = 16, PAGE = 4096, JUMP_CODE = 0xE9 };

/* Also exported for the agent. */
__attribute__((visibility("default"))) void ffm_gate_jump(uint8_t *start, const uint8_t *target)
{
    const size_t place = (uintptr_t)start % BLOCK;
    uint64_t *block = (uint64_t *)(start - place), before[2] = {block[0], block[1]}, after[2];
    const int32_t distance = (int32_t)(target - (start + FFM_GATE_JUMP_BYTES));
    memcpy(after, before, BLOCK);
    ((uint8_t *)after)[place] = JUMP_CODE;
    memcpy((uint8_t *)after + place + 1, &distance, sizeof distance);
    __asm__ volatile("lock cmpxchg16b (%[block])"
                     : "+a"(before[0]), "+d"(before[1])
                     : [block] "r"(block), "b"(after[0]), "c"(after[1])
                     : "memory", "cc");
}

bool ffm_gate_jump_reaches(const uint8_t *start, const uint8_t *target)
{
    const int64_t distance = (int64_t)((uintptr_t)target - (uintptr_t)(start + FFM_GATE_JUMP_BYTES));
    return (uintptr_t)start % BLOCK + FFM_GATE_JUMP_BYTES <= BLOCK && distance == (int32_t)distance;
}

bool ffm_gate_jump_writable(uint8_t *start, bool writable)
{
    uint8_t *page = (uint8_t *)((uintptr_t)start & ~(uintptr_t)(PAGE - 1));
    const size_t bytes = (size_t)(start - page) + FFM_GATE_JUMP_BYTES;
    return mprotect(page, bytes, PROT_READ | PROT_EXEC | (writable ? PROT_WRITE : 0)) == 0;
}
