#include "gate_jump.h"

#include <stddef.h>
#include <sys/mman.h>

enum { PAGE = 4096 };

/* Also exported for the agent. */
__attribute__((visibility("default"))) void ffm_gate_jump(uint8_t *start, const uint8_t *target)
{
    ffm_jump_put(start, target);
}

bool ffm_gate_jump_writable(uint8_t *start, bool writable)
{
    uint8_t *page = (uint8_t *)((uintptr_t)start & ~(uintptr_t)(PAGE - 1));
    const size_t bytes = (size_t)(start - page) + FFM_JUMP_BYTES;
    return mprotect(page, bytes, PROT_READ | PROT_EXEC | (writable ? PROT_WRITE : 0)) == 0;
}
