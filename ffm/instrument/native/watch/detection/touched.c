#include "touched.h"

#include "guarded.h"
#include "instruction.h"
#include "masked.h"

enum { PAGE = 4096 };

static void add(ffm_touched *to, uint64_t start, uint64_t bytes, bool writing)
{
    to->of[to->count].start = start;
    to->of[to->count].end = start + bytes;
    to->of[to->count].writing = writing;
    to->count++;
}

/* The operand at `start`, unless it is the one that faulted. */
static void add_operand(ffm_touched *to, uint64_t start, uint64_t bytes, bool writing)
{
    if (start != to->of[0].start)
        add(to, start, bytes, writing);
}

/* Whether the instruction could be read. The program may have jumped to where there is no code. */
static bool read_instruction(uint64_t code, uint8_t copy[FFM_INSTRUCTION_ROOM])
{
    enum { LONGEST = FFM_INSTRUCTION_LONGEST };
    const uint64_t page_end = (code | (PAGE - 1)) + 1;
    const uint64_t first = page_end - code < LONGEST ? page_end - code : LONGEST;
    if (!ffm_guarded_read(copy, code, first))
        return false;
    if (first < LONGEST)
        ffm_guarded_read(copy + first, page_end, LONGEST - first);
    return true;
}

/* An instruction with a mask: only what that selects, which the address of the fault need not be the first of. */
static bool selected(const uint8_t *code, uint64_t address, const ucontext_t *context, ffm_touched *to, bool writing)
{
    uint64_t start, end;
    if (!ffm_masked_bytes(code, context, &start, &end) || address >= end || (address | (PAGE - 1)) < start)
        return false;
    add(to, start, end - start, writing);
    return true;
}

ffm_touched ffm_touched_by(uint64_t address, bool writing, const ucontext_t *context)
{
    const greg_t *registers = context->uc_mcontext.gregs;
    const uint64_t code = (uint64_t)registers[REG_RIP];
    uint8_t copy[FFM_INSTRUCTION_ROOM] = {0};
    ffm_touched found = {.count = 0};
    if (code == address || !read_instruction(code, copy)) {
        add(&found, address, 1, writing);
        return found;
    }
    const ffm_places places = ffm_instruction_places(copy);
    const uint32_t bytes = ffm_instruction_bytes(copy);
    found.known = places != FFM_PLACES_MANY;
    if (!found.known) {
        add(&found, address & ~(uint64_t)(PAGE - 1), PAGE, writing);
        return found;
    }
    if (selected(copy, address, context, &found, writing))
        return found;
    add(&found, address, bytes, writing);
    if (places != FFM_PLACES_ONE) {
        add_operand(&found, (uint64_t)registers[REG_RSI], bytes, false);
        add_operand(&found, (uint64_t)registers[REG_RDI], bytes, places == FFM_PLACES_COPY);
    }
    return found;
}
