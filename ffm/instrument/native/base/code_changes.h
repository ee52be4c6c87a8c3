/* Code that is changed while other threads may be running it. */
#ifndef FFM_CODE_CHANGES_H
#define FFM_CODE_CHANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { FFM_JUMP_BYTES = 5, FFM_JUMP_BLOCK = 16 };

/* Put a jump to `target` at `start` with a single store, so that other threads see all of it or nothing. The bytes of
 * the jump must be writable and lie within one aligned block of 16. */
static inline void ffm_jump_put(uint8_t *start, const uint8_t *target)
{
    enum { JUMP_CODE = 0xE9 };
    const size_t place = (uintptr_t)start % FFM_JUMP_BLOCK;
    uint64_t *block = (uint64_t *)(start - place), before[2] = {block[0], block[1]}, after[2];
    const int32_t distance = (int32_t)(target - (start + FFM_JUMP_BYTES));
    memcpy(after, before, FFM_JUMP_BLOCK);
    ((uint8_t *)after)[place] = JUMP_CODE;
    memcpy((uint8_t *)after + place + 1, &distance, sizeof distance);
    __asm__ volatile("lock cmpxchg16b (%[block])"
                     : "+a"(before[0]), "+d"(before[1])
                     : [block] "r"(block), "b"(after[0]), "c"(after[1])
                     : "memory", "cc");
}

/* Whether a jump at `start` lies within such a block. */
static inline bool ffm_jump_fits(const uint8_t *start)
{
    return (uintptr_t)start % FFM_JUMP_BLOCK + FFM_JUMP_BYTES <= FFM_JUMP_BLOCK;
}

/* Whether such a jump can be put there, and reaches its target. */
static inline bool ffm_jump_reaches(const uint8_t *start, const uint8_t *target)
{
    const int64_t distance = (int64_t)((uintptr_t)target - (uintptr_t)(start + FFM_JUMP_BYTES));
    return ffm_jump_fits(start) && distance == (int32_t)distance;
}

/* Make the page of an address writable, until it is closed again; meanwhile, it stays executable. False if the system
 * does not allow that, or, unless `waits`, if another thread has a page open. Safe in signal handlers that do not
 * interrupt a change. */
bool ffm_code_open(uint64_t address, bool waits);
void ffm_code_close(uint64_t address);

/* In a forked child, where a thread that no longer exists may have had a page open. */
void ffm_code_changes_after_fork(void);

#endif
