#include "machine_ways.h"

#include <string.h>
#include <sys/mman.h>

#include "machine_encoding.h"
#include "machine_instruction.h"
#include "new_pages.h"

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

static bool leads(const uint64_t word[2])
{
    const uint32_t kind = ffm_kind(word);
    return kind == FFM_BRANCH || kind == FFM_BRANCH_UNIFORM || kind == FFM_CALL || kind == FFM_PART ||
           ffm_begins_collective(word);
}

static bool all_known(ffm_ways *ways)
{
    bool known = true;
    for (size_t number = 0; number < ways->count && known; number++) {
        uint64_t word[2];
        ffm_ways_instruction(ways, number, word);
        known = !leads(word) || ffm_ways_target(ways, word, number) >= 0;
        ways->restores |= ffm_kind(word) == FFM_RESTORE;
    }
    return known;
}

static void list_partings(ffm_ways *ways, bool collective)
{
    for (size_t number = 0; number < ways->count; number++) {
        uint64_t word[2];
        ffm_ways_instruction(ways, number, word);
        if (collective ? ffm_begins_collective(word) : ffm_kind(word) == FFM_PART)
            ways->partings[ways->parted++] =
                (ffm_parting){(uint32_t)number, (uint32_t)ffm_ways_target(ways, word, number), ffm_barrier(word)};
    }
}

bool ffm_ways_join(const ffm_ways *ways, size_t first, size_t last)
{
    for (size_t number = 0; number < ways->count; number++) {
        uint64_t word[2];
        ffm_ways_instruction(ways, number, word);
        const int64_t target = leads(word) ? ffm_ways_target(ways, word, number) : -1;
        if (target >= (int64_t)first && target <= (int64_t)last)
            return true;
    }
    return false;
}

/* Whether a call returns right behind it: before it, without a jump in between, that place is put into a register
 * (MOV). */
static bool returns_behind(const ffm_ways *ways, size_t number)
{
    enum { MOVE = 0x002 };
    const size_t call = number;
    const uint64_t place = (number + 1) * FFM_INSTRUCTION_BYTES;
    while (number-- != 0) {
        uint64_t word[2];
        ffm_ways_instruction(ways, number, word);
        if (ffm_leads_elsewhere(word))
            return false;
        if (ffm_base(word) == MOVE && ffm_form_of(word) == FFM_FORM_IMMEDIATE && word[0] >> 32 == place)
            return ffm_field(word[0], 12, 4) == FFM_ALWAYS && !ffm_ways_join(ways, number + 1, call);
    }
    return false;
}

static void list_calls(ffm_ways *ways)
{
    for (size_t number = 0; number < ways->count; number++) {
        uint64_t word[2];
        ffm_ways_instruction(ways, number, word);
        if (ffm_kind(word) != FFM_CALL)
            continue;
        if (ways->called == FFM_CALLS_FOLLOWED || !returns_behind(ways, number)) {
            ways->called = 0;
            return;
        }
        ways->calls[ways->called++] = (uint32_t)number;
    }
}

bool ffm_ways_open(ffm_ways *ways, uint32_t architecture, const uint8_t *first, size_t bytes)
{
    *ways = (ffm_ways){.first = first, .count = bytes / FFM_INSTRUCTION_BYTES, .architecture = architecture};
    if (ways->count == 0 || ways->count > UINT32_MAX || !all_known(ways))
        return false;
    ways->partings = ffm_new_pages(ways->count * sizeof *ways->partings);
    if (ways->partings == NULL)
        return false;
    list_partings(ways, false);
    ways->by_barriers = ways->parted;
    list_partings(ways, true);
    list_calls(ways);
    return true;
}

void ffm_ways_close(ffm_ways *ways)
{
    munmap(ways->partings, ways->count * sizeof *ways->partings);
    if (ways->met_by != NULL)
        munmap(ways->met_by, ways->count * sizeof *ways->met_by);
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

/* Whether threads that meet at an instruction may be those whose ways part by a barrier: one that was saved can have
 * been restored as another one. */
static bool may_meet(const ffm_ways *ways, size_t meeting, uint32_t barrier, uint32_t parting)
{
    if (ways->met_by != NULL)
        return (ways->met_by[meeting].bits[parting / 64] >> parting % 64 & 1) != 0;
    return ways->restores || ways->partings[parting].barrier == barrier;
}

/* Call `to`, unless that is NULL, with where they go on. Returns whether that is right behind where they meet. */
static bool go_on(const ffm_ways *ways, size_t meeting, void (*to)(void *context, size_t number), void *context)
{
    uint64_t word[2];
    bool behind = false;
    ffm_ways_instruction(ways, meeting, word);
    const bool collective = ffm_kind(word) == FFM_END_COLLECTIVE;
    const uint32_t end = collective ? ways->parted : ways->by_barriers;
    for (uint32_t parting = collective ? ways->by_barriers : 0; parting < end; parting++) {
        const uint32_t target = ways->partings[parting].target;
        if (!collective && !may_meet(ways, meeting, ffm_barrier(word), parting))
            continue;
        behind |= target == meeting + 1;
        if (to != NULL)
            to(context, target);
    }
    return behind;
}

/* They go on where the instruction by which they parted says, mostly right behind the one by which they meet. If some
 * go on there by the same barrier, all do. */
void ffm_ways_meets(const ffm_ways *ways, size_t meeting, void (*to)(void *context, size_t number), void *context)
{
    uint64_t word[2];
    ffm_ways_instruction(ways, meeting, word);
    const bool any = ways->restores && ffm_kind(word) == FFM_MEET;
    if (any || !go_on(ways, meeting, NULL, NULL))
        go_on(ways, meeting, to, context);
}
