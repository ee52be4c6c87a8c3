/* How a GPU instruction passes on one half of an address: from constant bank 0 and registers to registers, and to what
 * uses it.
 *
 * An address is a base plus an offset. So a number that the program passes can become the upper half of an address only
 * by moves, choices, sums and operations on bits. It does not if it is a factor or a shift distance, if it goes through
 * floating point or a comparison, if all of its bits are inverted, or if only its sign is used. What a function
 * elsewhere is given counts as used. */
#ifndef FFM_MACHINE_FLOW_H
#define FFM_MACHINE_FLOW_H

#include <stdbool.h>
#include <stdint.h>

/* A bit for each register, general and uniform, that may hold the half, and for each barrier, where registers are saved
 * from and restored to. */
typedef struct {
    uint64_t general[4], uniform[4];
    uint16_t barriers;
} ffm_carriers;

/* What an instruction does whose reads of the bank are known (ffm_instruction_reads). `carriers` are those before it,
 * and become those after it. `place` is the half's first byte in the bank. Returns whether the instruction may do more
 * with the half than pass it on: use it as an address, or store it. */
bool ffm_instruction_uses(uint32_t architecture, const uint64_t word[2], uint32_t place, ffm_carriers *carriers);

/* Whether the instruction only calculates, moves or compares. Before Blackwell, it then writes at most ffm_written_by
 * registers, from the one that it names on, and perhaps a predicate. Comparisons write predicates only. */
bool ffm_calculates(const uint64_t word[2]);
uint32_t ffm_written_by(const uint64_t word[2]);

/* Whether it may read what the thread has on its stack. */
bool ffm_may_read_stack(const uint64_t word[2]);

/* Whether one of `count` general registers, from the first one on, carries. */
bool ffm_carried_by(const ffm_carriers *carriers, uint32_t first, uint32_t count);

/* Whether an instruction's own registers are uniform ones. */
bool ffm_of_uniform(const uint64_t word[2]);

#endif
