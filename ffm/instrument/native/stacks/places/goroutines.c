#include "goroutines.h"

#include <string.h>

#include "guarded.h"
#include "modules.h"
#include "unwind_from.h"

/* The code to which C returns in runtime.asmcgocall: it finds the goroutine's stack by what it stored on the thread's,
 * the goroutine and how far below the end of its stack the caller was. Where it stored them depends on Go's release.
 *   mov goroutine(%rsp), %rdi; mov 8(%rdi), %rsi; sub distance(%rsp), %rsi */
enum { GOROUTINE_AT = 4, END_AT = 5, DISTANCE_AT = 9, MOST_CODE = 14 };

typedef struct {
    uint8_t goroutine, distance; /* offsets from the stack pointer */
} switch_code;

static bool is_switch(uint64_t address, switch_code *found)
{
    static const uint8_t load_goroutine[] = {0x48, 0x8b, 0x7c, 0x24};
    static const uint8_t load_end[] = {0x48, 0x8b, 0x77, 0x08};
    static const uint8_t subtract[] = {0x48, 0x2b, 0x74, 0x24}, subtract_first[] = {0x48, 0x2b, 0x34, 0x24};
    uint8_t code[MOST_CODE];
    memcpy(code, (const void *)address, sizeof code);
    if (memcmp(code, load_goroutine, sizeof load_goroutine) != 0 ||
        memcmp(code + END_AT, load_end, sizeof load_end) != 0)
        return false;
    const bool first = memcmp(code + DISTANCE_AT, subtract_first, sizeof subtract_first) == 0;
    *found = (switch_code){.goroutine = code[GOROUTINE_AT], .distance = first ? 0 : code[MOST_CODE - 1]};
    return first || memcmp(code + DISTANCE_AT, subtract, sizeof subtract) == 0;
}

/* Stacks end at few addresses. Those that are known to be no switch are kept, because the code of others may not be
 * readable, and the kernel has to say so. */
static bool is_readable_switch(uint64_t address, switch_code *found)
{
    enum { KNOWN = 64, ADDRESS_BITS = 47 };
    static uint64_t others[KNOWN];
    const uint64_t mark = address | (uint64_t)ffm_modules_generation() << ADDRESS_BITS;
    uint64_t *known = &others[(address ^ address >> 6) % KNOWN];
    if (__atomic_load_n(known, __ATOMIC_RELAXED) == mark)
        return false;
    if (address >> ADDRESS_BITS == 0 && ffm_guarded_readable(address, address + MOST_CODE) && is_switch(address, found))
        return true;
    __atomic_store_n(known, mark, __ATOMIC_RELAXED);
    return false;
}

bool ffm_goroutine_waits_at(uint64_t address)
{
    switch_code code;
    return is_readable_switch(address, &code);
}

/* The stack pointer and the frame pointer of the frame that goes on at this address. */
static bool find_frame(const ffm_registers *from, uint64_t address, uint32_t depth, uint64_t *stack, uint64_t *frame)
{
    unw_context_t context;
    unw_cursor_t cursor;
    unw_word_t at = 0;
    if (!ffm_unwind_from(&cursor, &context, from))
        return false;
    while (unw_get_reg(&cursor, UNW_REG_IP, &at) == 0 && at != address)
        if (depth-- == 0 || unw_step(&cursor) <= 0)
            return false;
    return at == address && unw_get_reg(&cursor, UNW_REG_SP, stack) == 0 &&
           unw_get_reg(&cursor, UNW_X86_64_RBP, frame) == 0;
}

/* The words of a goroutine that Go's ABI fixes: its stack. */
typedef struct {
    uint64_t low, end;
} goroutine;

static uint64_t word_at(uint64_t place)
{
    return *(const uint64_t *)place;
}

/* Go keeps frame pointers on its stacks. The caller of asmcgocall, which has no frame itself, is the first. */
uint32_t ffm_goroutine_frames(const ffm_registers *from, uint64_t *frames, uint32_t depth, uint32_t room)
{
    switch_code code;
    uint64_t stack, frame;
    if (__builtin_expect(depth == 0 || !is_readable_switch(frames[depth - 1], &code), 1))
        return depth;
    if (!find_frame(from, frames[depth - 1], depth, &stack, &frame))
        return depth;
    const goroutine *caller = (const goroutine *)word_at(stack + code.goroutine);
    const uint64_t distance = word_at(stack + code.distance);
    if (caller == NULL || distance > caller->end - caller->low || distance < sizeof(uint64_t))
        return depth;
    uint64_t above = caller->end - distance;
    if (depth < room)
        frames[depth++] = word_at(above);
    while (depth < room && frame > above && frame <= caller->end - 2 * sizeof(uint64_t)) {
        const uint64_t address = word_at(frame + sizeof(uint64_t));
        if (address == 0)
            break;
        frames[depth++] = address;
        above = frame;
        frame = word_at(frame);
    }
    return depth;
}
