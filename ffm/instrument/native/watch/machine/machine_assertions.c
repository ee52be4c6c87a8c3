#include "machine_assertions.h"

#include <stddef.h>

#include "machine_encoding.h"

enum { STORE_OWN = 0x387, TABLE = 4 };

/* Whether the address of what is called there comes from bank 4, on the only path that leads there. */
static bool is_named(const ffm_ways *ways, size_t number)
{
    uint64_t word[2];
    ffm_ways_instruction(ways, number, word);
    const uint32_t called = ffm_field(word[0], 24, 8);
    const size_t call = number;
    while (number-- != 0) {
        ffm_ways_instruction(ways, number, word);
        const uint32_t written = ffm_field(word[0], 16, 8);
        if (ffm_leads_elsewhere(word) || written == called + 1 || (written + 2 == called && !ffm_calculates(word)))
            return false;
        if (written == called)
            return ffm_kind(word) == FFM_LOAD && ffm_bank(word) == TABLE && ffm_moved_bytes(word) == 8 &&
                   ffm_field(word[0], 12, 4) == FFM_ALWAYS && !ffm_ways_join(ways, number + 1, call);
    }
    return false;
}

bool ffm_only_asserts(const ffm_ways *ways)
{
    bool calls = false;
    for (size_t number = 0; number < ways->count; number++) {
        uint64_t word[2];
        ffm_ways_instruction(ways, number, word);
        const bool elsewhere = ffm_kind(word) == FFM_CALL_ELSEWHERE;
        if (elsewhere ? !is_named(ways, number) : ffm_may_read_stack(word))
            return false;
        calls |= elsewhere;
    }
    return calls;
}

bool ffm_instruction_uses_asserting(uint32_t architecture, const uint64_t word[2], uint32_t place,
                                    ffm_carriers *carriers)
{
    /* The texts of the assertion, its file and its function, its line, and the size of a character. */
    enum { FIRST_GIVEN = 4, GIVEN = 10 };
    const uint32_t kind = ffm_kind(word);
    if (kind == FFM_CALL_ELSEWHERE)
        return ffm_carried_by(carriers, FIRST_GIVEN, GIVEN);
    return kind != STORE_OWN && ffm_instruction_uses(architecture, word, place, carriers);
}
