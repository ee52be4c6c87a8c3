/* What arithmetic of a GPU leaves in registers and predicates, before Blackwell.
 *
 * Only what is known of all bits is calculated; of other instructions, all that they may write becomes unknown. */
#ifndef FFM_MACHINE_ARITHMETIC_H
#define FFM_MACHINE_ARITHMETIC_H

#include "machine_registers.h"

/* Write what an instruction calculates (ffm_calculates), moves or compares. */
void ffm_calculate(const ffm_executed *one);

#endif
