/* The host memory that an operation's work writes, or reads on: what a wait for it protects
 * (docs/architecture.md#synchronizations). */
#ifndef FFM_PROTECTED_DATA_H
#define FFM_PROTECTED_DATA_H

#include "catalogue.h"
#include "records.h"
#include "thread.h"

/* Only operations with one of these stacks count; `plan` is NULL for all. False if its keys are not sorted. */
bool ffm_protected_data_open(const ffm_plan_header *plan);

void ffm_protected_data_after_fork(void);

/* Whether operations with a stack count. */
bool ffm_protected_data_planned(uint32_t stack);

/* Before a call: a kernel that receives ordinary memory may use any of it, and obeys its protection. From then on
 * nothing is watched, and everything judged counts as used. */
void ffm_protected_data_before(const ffm_function *function, const uint64_t *arguments);

/* After the call: watch what an issued operation protects. */
void ffm_protected_data_add(const ffm_function *function, const uint64_t *arguments, const ffm_operation *operation,
                            uint64_t number, const ffm_thread *thread);

#endif
