#include "parameter_flow.h"

#include <string.h>
#include <sys/mman.h>

#include "machine_encoding.h"
#include "machine_flow.h"
#include "machine_instruction.h"
#include "new_pages.h"

enum { END_COLLECTIVE = 0x91b };

/* Before each instruction: what carries the half, and whether control may come there. */
typedef struct {
    ffm_carriers carriers;
    bool reached, changed;
} state;

typedef struct {
    const uint8_t *code;
    size_t count; /* of instructions */
    uint32_t architecture, place;
    state *before;
    size_t next; /* the first instruction whose state changed may be there or behind it */
} flow;

static void instruction_at(const flow *of, size_t number, uint64_t word[2])
{
    memcpy(word, of->code + number * FFM_INSTRUCTION_BYTES, FFM_INSTRUCTION_BYTES);
}

static void join(flow *of, size_t number, const ffm_carriers *carriers)
{
    if (number >= of->count)
        return;
    state *at = &of->before[number];
    bool changed = !at->reached;
    for (int i = 0; i < 4; i++) {
        changed |= (carriers->general[i] & ~at->carriers.general[i]) != 0;
        changed |= (carriers->uniform[i] & ~at->carriers.uniform[i]) != 0;
        at->carriers.general[i] |= carriers->general[i];
        at->carriers.uniform[i] |= carriers->uniform[i];
    }
    at->reached = true;
    at->changed |= changed;
    if (changed && number < of->next)
        of->next = number;
}

/* Of a branch or call, or where the threads meet again whose ways part. Negative if that is not known. */
static int64_t target_of(const flow *of, const uint64_t word[2], size_t number)
{
    const uint64_t offset = number * FFM_INSTRUCTION_BYTES, bytes = of->count * FFM_INSTRUCTION_BYTES;
    return ffm_kind(word) == FFM_PART ? ffm_meeting_target(word, offset, bytes)
                                      : ffm_branch_target(of->architecture, word, offset, bytes);
}

/* Whether all ways through the code are known: threads that do something collectively leave theirs. */
static bool ways_are_known(const flow *of)
{
    for (size_t number = 0; number < of->count; number++) {
        uint64_t word[2];
        instruction_at(of, number, word);
        const uint32_t kind = ffm_kind(word);
        const bool leads = kind == FFM_BRANCH || kind == FFM_BRANCH_UNIFORM || kind == FFM_CALL || kind == FFM_PART;
        if (kind == END_COLLECTIVE || (leads && target_of(of, word, number) < 0))
            return false;
    }
    return true;
}

static void join_target(flow *of, size_t number, const ffm_carriers *carriers)
{
    uint64_t word[2];
    instruction_at(of, number, word);
    join(of, (size_t)target_of(of, word, number) / FFM_INSTRUCTION_BYTES, carriers);
}

/* Behind any call. */
static void join_returns(flow *of, const ffm_carriers *carriers)
{
    for (size_t number = 0; number < of->count; number++) {
        uint64_t word[2];
        instruction_at(of, number, word);
        if (ffm_kind(word) == FFM_CALL)
            join(of, number + 1, carriers);
    }
}

/* Threads that meet go on where the instruction says by which they parted, mostly right behind the one by which they
 * meet: if that is where some go on by the same barrier, all do. */
static void join_meeting(flow *of, const uint64_t from[2], size_t meeting, const ffm_carriers *carriers)
{
    for (int behind = 1; behind >= 0; behind--)
        for (size_t number = 0; number < of->count; number++) {
            uint64_t word[2];
            instruction_at(of, number, word);
            if (ffm_kind(word) != FFM_PART || ffm_barrier(word) != ffm_barrier(from))
                continue;
            if (!behind)
                join_target(of, number, carriers);
            else if ((size_t)target_of(of, word, number) == (meeting + 1) * FFM_INSTRUCTION_BYTES)
                return;
        }
}

/* Whether all threads leave there. Two predicates can say that some do not, and bits 32 and 33 that it depends on
 * whether they are together. */
static bool leaves(const uint64_t word[2])
{
    enum { ALWAYS = 7 };
    const uint32_t kind = ffm_kind(word);
    const bool always = (word[0] >> 12 & 0xf) == ALWAYS && (word[1] >> (87 - 64) & 0xf) == ALWAYS;
    return always && (kind == FFM_EXIT || kind == FFM_RETURN || (kind == FFM_BRANCH && (word[0] >> 32 & 3) == 0));
}

/* Returns whether the half is used. */
static bool step(flow *of, size_t number)
{
    uint64_t word[2];
    ffm_carriers carriers = of->before[number].carriers;
    of->before[number].changed = false;
    instruction_at(of, number, word);
    if (ffm_instruction_uses(of->architecture, word, of->place, &carriers))
        return true;
    const uint32_t kind = ffm_kind(word);
    if (kind == FFM_BRANCH || kind == FFM_BRANCH_UNIFORM || kind == FFM_CALL)
        join_target(of, number, &carriers);
    if (kind == FFM_RETURN)
        join_returns(of, &carriers);
    if (kind == FFM_MEET)
        join_meeting(of, word, number, &carriers);
    if (!leaves(word))
        join(of, number + 1, &carriers);
    return false;
}

bool ffm_ways_are_known(uint32_t architecture, const uint8_t *code, size_t bytes)
{
    const flow of = {.code = code, .count = bytes / FFM_INSTRUCTION_BYTES, .architecture = architecture};
    return ways_are_known(&of);
}

bool ffm_may_be_address(uint32_t architecture, const uint8_t *code, size_t bytes, uint32_t place)
{
    flow of = {code, bytes / FFM_INSTRUCTION_BYTES, architecture, place, NULL, 0};
    const size_t room = of.count * sizeof *of.before;
    of.before = ffm_new_pages(room);
    if (of.count == 0 || of.before == NULL)
        return true;
    const ffm_carriers none = {{0}, {0}};
    bool used = !ways_are_known(&of);
    join(&of, 0, &none);
    for (of.next = 0; !used && of.next < of.count;) {
        const size_t number = of.next++;
        if (of.before[number].changed)
            used = step(&of, number);
    }
    munmap(of.before, room);
    return used;
}
