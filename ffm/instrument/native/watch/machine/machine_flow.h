/* How an instruction of a GPU passes on a half of an address: from constant bank 0 and registers to registers, and to
 * what uses it.
 *
 * An address is a base plus an offset. So a number can be the upper half of one that the program passes only if it gets
 * there by moves, choices, sums and operations on bits; neither as a factor, nor as the number of places to shift by,
 * nor by way of floating point or a comparison, nor with all of its bits turned, nor as its sign alone. What a function
 * elsewhere is given is used. */
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

/* What one instruction does, of those whose reads of the bank are known (ffm_instruction_reads): `carriers` are those
 * before it, and become those after it. `place` is that of the half's first byte in the bank. Returns whether it may
 * use the half in another way than to pass it on: as an address, or as what it stores. */
bool ffm_instruction_uses(uint32_t architecture, const uint64_t word[2], uint32_t place, ffm_carriers *carriers);

/* Whether the instruction only calculates, moves or compares. Then it writes at most so many registers from the one on
 * that it names, before Blackwell, and predicates: those of comparisons, which write no register, or one. */
bool ffm_calculates(const uint64_t word[2]);
uint32_t ffm_written_by(const uint64_t word[2]);

/* Whether it may read what the thread has on its stack. */
bool ffm_may_read_stack(const uint64_t word[2]);

/* Whether one of so many general registers from the first one on carries. */
bool ffm_carried_by(const ffm_carriers *carriers, uint32_t first, uint32_t count);

/* Whether its registers are uniform ones. */
bool ffm_of_uniform(const uint64_t word[2]);

#endif
