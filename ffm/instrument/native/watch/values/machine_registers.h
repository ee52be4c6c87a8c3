/* The registers of an instruction that is executed with partly unknown values, before Blackwell. */
#ifndef FFM_MACHINE_REGISTERS_H
#define FFM_MACHINE_REGISTERS_H

#include <stdbool.h>
#include <stdint.h>

#include "parameter_bank.h"
#include "register_values.h"

/* An instruction, what its registers hold, and whether it is executed. */
typedef struct {
    ffm_bank_use *of;
    const uint64_t *word;
    ffm_held *held;
    uint32_t kind, base;
    bool uniform;
    uint8_t executed;
} ffm_executed;

/* The register that a field of one of its words names: of the instruction's own kind, or a uniform one. */
ffm_values ffm_own_register(const ffm_executed *one, uint64_t word, uint32_t first);
ffm_values ffm_uniform_register(const ffm_held *held, uint32_t number);

/* The number of the register that it names first, and writes. */
uint32_t ffm_destination(const ffm_executed *one);

/* Write a register or a predicate. If it is not known whether the instruction is executed, the old value stays
 * possible. Uniform predicates are not followed. */
void ffm_set_register(const ffm_executed *one, uint32_t number, ffm_values to);
void ffm_set_predicate(const ffm_executed *one, uint32_t number, uint8_t to);

/* What is in bits 72 to 90, where most modifiers are. */
uint32_t ffm_modifiers(const ffm_executed *one);

#endif
