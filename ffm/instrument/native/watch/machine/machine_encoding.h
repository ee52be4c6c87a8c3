/* How GPU instructions are encoded, from compute capability 7.5 on: in two words, whose bits are numbered from 0 to
 * 127.
 *
 * Undocumented: derived from what NVIDIA's disassembler shows (machine_instruction.h). */
#ifndef FFM_MACHINE_ENCODING_H
#define FFM_MACHINE_ENCODING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FFM_INSTRUCTION_BYTES = 16 };

/* Architectures with which encodings change, as 10 * major + minor. */
enum { FFM_TURING = 75, FFM_HOPPER = 90, FFM_BLACKWELL = 100 };

/* Bits 9 to 11 of arithmetic: which of the operands b and c is not a register of the instruction's own kind, and what
 * it is instead. Bits 64 to 71 name the register of the other one. */
typedef enum {
    FFM_FORM_REGISTERS = 1,
    FFM_FORM_IMMEDIATE_LAST,
    FFM_FORM_CONSTANT_LAST,
    FFM_FORM_IMMEDIATE,
    FFM_FORM_CONSTANT,
    FFM_FORM_UNIFORM,
    FFM_FORM_UNIFORM_LAST
} ffm_form;

/* Barriers by which threads part and meet. */
enum { FFM_BARRIERS = 16 };

/* The predicate that is always true. */
enum { FFM_ALWAYS = 7 };

/* A function elsewhere gets its arguments, and returns its results, in registers below this one and on the stack. */
enum { FFM_FIRST_KEPT = 16 };

/* Bits 0 to 11 of instructions that lead elsewhere. Threads part and meet again (BSSY, BSYNC) by a barrier that can be
 * saved in a register and restored (BMOV). Threads that have parted can wait for each other (WARPSYNC) and then do
 * something collectively, which ends with ENDCOLLECTIVE. */
enum {
    FFM_CALL_ELSEWHERE = 0x343,
    FFM_WAIT = 0x348,
    FFM_SAVE = 0x355,
    FFM_RESTORE = 0x356,
    FFM_BRANCH_UNIFORM = 0x547,
    FFM_END_COLLECTIVE = 0x91b,
    FFM_MEET = 0x941,
    FFM_CALL = 0x944,
    FFM_PART = 0x945,
    FFM_BRANCH = 0x947,
    FFM_EXIT = 0x94d,
    FFM_RETURN = 0x950
};

/* Bits 0 to 11 of loads from a constant bank. Blackwell has one for uniform registers, with and without an index. */
enum { FFM_LOAD_UNIFORM_BLACKWELL = 0x7ac, FFM_LOAD_UNIFORM = 0xab9, FFM_LOAD_UNIFORM_INDEX = 0xabb, FFM_LOAD = 0xb82 };

#define FFM_HOLDS(list, wanted) ffm_holds(list, sizeof list / sizeof *list, wanted)

static inline bool ffm_holds(const uint16_t *list, size_t count, uint32_t wanted)
{
    for (size_t i = 0; i < count; i++)
        if (list[i] == wanted)
            return true;
    return false;
}

static inline uint32_t ffm_field(uint64_t word, uint32_t first, uint32_t bits)
{
    return (uint32_t)(word >> first) & ((1u << bits) - 1);
}

static inline uint32_t ffm_kind(const uint64_t word[2])
{
    return ffm_field(word[0], 0, 12);
}

/* Bits 0 to 8 of arithmetic: what is calculated. */
static inline uint32_t ffm_base(const uint64_t word[2])
{
    return ffm_field(word[0], 0, 9);
}

static inline ffm_form ffm_form_of(const uint64_t word[2])
{
    return (ffm_form)ffm_field(word[0], 9, 3);
}

/* Of arithmetic: whether a uniform register is an operand. Of memory accesses: whether one is read. */
static inline bool ffm_names_uniform(const uint64_t word[2])
{
    return ffm_field(word[1], 91 - 64, 1) != 0;
}

/* How many bytes a load or a store moves for each thread, from bits 73 to 75; 0 if that is not known. */
static inline uint32_t ffm_moved_bytes(const uint64_t word[2])
{
    static const uint8_t bytes[8] = {1, 1, 2, 2, 4, 8, 16, 0};
    return bytes[ffm_field(word[1], 73 - 64, 3)];
}

static inline bool ffm_loads_constant(uint32_t kind)
{
    return kind == FFM_LOAD || kind == FFM_LOAD_UNIFORM || kind == FFM_LOAD_UNIFORM_INDEX ||
           kind == FFM_LOAD_UNIFORM_BLACKWELL;
}

/* Whether a load from a constant bank adds a register to the place that it names. */
static inline bool ffm_has_index(const uint64_t word[2])
{
    const uint32_t kind = ffm_kind(word), none = 0xff;
    return kind == FFM_LOAD_UNIFORM_INDEX || (kind != FFM_LOAD_UNIFORM && ffm_field(word[0], 24, 8) != none);
}

/* The barrier by which threads part and meet. */
static inline uint32_t ffm_barrier(const uint64_t word[2])
{
    return ffm_field(word[0], 16, 4);
}

/* Whether what is restored is a barrier: other registers of that kind say where threads go on when they end. */
static inline bool ffm_restores_barrier(const uint64_t word[2])
{
    return ffm_kind(word) == FFM_RESTORE && ffm_field(word[0], 24, 8) < FFM_BARRIERS;
}

/* Whether threads do what follows together, and afterwards go on where the instruction leads. */
static inline bool ffm_begins_collective(const uint64_t word[2])
{
    return ffm_kind(word) == FFM_WAIT && ffm_field(word[1], 86 - 64, 1) != 0;
}

/* Whether control may go on elsewhere than right behind it, or come back from elsewhere. */
static inline bool ffm_leads_elsewhere(const uint64_t word[2])
{
    const uint32_t kind = ffm_kind(word);
    return kind == FFM_CALL_ELSEWHERE || kind == FFM_BRANCH_UNIFORM || kind == FFM_MEET || kind == FFM_END_COLLECTIVE ||
           kind == FFM_CALL || kind == FFM_BRANCH || kind == FFM_RETURN || ffm_begins_collective(word);
}

/* The bank of a constant operand, and its place there, whose bits end before those of the bank. */
static inline uint32_t ffm_bank(const uint64_t word[2])
{
    return ffm_field(word[0], 54, 5);
}

static inline uint32_t ffm_place_in_bank(const uint64_t word[2])
{
    const uint32_t first = ffm_kind(word) == FFM_LOAD_UNIFORM_BLACKWELL ? 37 : 38;
    return ffm_field(word[0], first, 54 - first);
}

#endif
