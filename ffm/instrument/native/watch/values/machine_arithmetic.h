/* What GPU arithmetic leaves in registers and predicates, before Blackwell.
 *
 * Only what is known in all bits is calculated. Everything that other instructions may write becomes unknown. */
#ifndef FFM_MACHINE_ARITHMETIC_H
#define FFM_MACHINE_ARITHMETIC_H

#include "machine_registers.h"

/* Write what an instruction calculates (ffm_calculates), moves or compares. */
void ffm_calculate(const ffm_executed *one);

#endif
