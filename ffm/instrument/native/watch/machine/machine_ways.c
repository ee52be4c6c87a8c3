#include "machine_ways.h"

#include <string.h>

#include "machine_encoding.h"
#include "machine_instruction.h"

enum { END_COLLECTIVE = 0x91b };

void ffm_ways_instruction(const ffm_ways *ways, size_t number, uint64_t word[2])
{
    memcpy(word, ways->first + number * FFM_INSTRUCTION_BYTES, FFM_INSTRUCTION_BYTES);
}

int64_t ffm_ways_target(const ffm_ways *ways, const uint64_t word[2], size_t number)
{
    const uint64_t offset = number * FFM_INSTRUCTION_BYTES, bytes = ways->count * FFM_INSTRUCTION_BYTES;
    const int64_t target = ffm_kind(word) == FFM_PART ? ffm_meeting_target(word, offset, bytes)
                                                      : ffm_branch_target(ways->architecture, word, offset, bytes);
    return target < 0 ? -1 : target / FFM_INSTRUCTION_BYTES;
}

/* Threads that do something collectively leave their way. */
bool ffm_ways_open(ffm_ways *ways, uint32_t architecture, const uint8_t *first, size_t bytes)
{
    *ways = (ffm_ways){first, bytes / FFM_INSTRUCTION_BYTES, architecture, false};
    bool known = true;
    for (size_t number = 0; number < ways->count && known; number++) {
        uint64_t word[2];
        ffm_ways_instruction(ways, number, word);
        const uint32_t kind = ffm_kind(word);
        const bool leads = kind == FFM_BRANCH || kind == FFM_BRANCH_UNIFORM || kind == FFM_CALL || kind == FFM_PART;
        known = kind != END_COLLECTIVE && (!leads || ffm_ways_target(ways, word, number) >= 0);
        ways->restores |= kind == FFM_RESTORE;
    }
    return known;
}

void ffm_ways_returns(const ffm_ways *ways, void (*to)(void *context, size_t number), void *context)
{
    for (size_t number = 0; number < ways->count; number++) {
        uint64_t word[2];
        ffm_ways_instruction(ways, number, word);
        if (ffm_kind(word) == FFM_CALL)
            to(context, number + 1);
    }
}

/* Whether threads that meet there may be those whose ways part at an instruction: a barrier that was saved can have
 * been restored as another one. */
static bool may_meet(const ffm_ways *ways, const uint64_t meeting[2], size_t number)
{
    uint64_t word[2];
    ffm_ways_instruction(ways, number, word);
    return ffm_kind(word) == FFM_PART && (ways->restores || ffm_barrier(word) == ffm_barrier(meeting));
}

static size_t meeting_place(const ffm_ways *ways, size_t number)
{
    uint64_t word[2];
    ffm_ways_instruction(ways, number, word);
    return (size_t)ffm_ways_target(ways, word, number);
}

/* They go on where the instruction says by which they parted, mostly right behind the one by which they meet: if that
 * is where some go on by the same barrier, all do. */
void ffm_ways_meets(const ffm_ways *ways, size_t meeting, void (*to)(void *context, size_t number), void *context)
{
    uint64_t word[2];
    ffm_ways_instruction(ways, meeting, word);
    for (size_t number = 0; number < ways->count && !ways->restores; number++)
        if (may_meet(ways, word, number) && meeting_place(ways, number) == meeting + 1)
            return;
    for (size_t number = 0; number < ways->count; number++)
        if (may_meet(ways, word, number))
            to(context, meeting_place(ways, number));
}
