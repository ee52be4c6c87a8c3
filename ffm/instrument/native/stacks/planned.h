/* Which stacks a plan names. A stack is searched once among the plan's keys; later the answer is looked up. */
#ifndef FFM_PLANNED_H
#define FFM_PLANNED_H

#include <stddef.h>
#include <stdint.h>

#include "stacks.h"

#define FFM_NOT_PLANNED UINT32_MAX

/* The records of a plan, each of which begins with the key of a stack, in the order of the keys. */
typedef struct {
    const uint8_t *records;
    size_t stride; /* bytes of a record */
    uint32_t count;
    uint32_t known[FFM_MOST_STACKS]; /* by stack: 0 until it is searched, 1 if it is not planned, or 2 plus the place */
} ffm_planned;

/* False if the records are not in the order of their keys. */
bool ffm_planned_open(ffm_planned *planned, const void *records, size_t stride, uint32_t count);

/* The place of the first record with the key of a stack, or FFM_NOT_PLANNED. */
uint32_t ffm_planned_place(ffm_planned *planned, uint32_t stack);

/* In a forked child, which numbers its stacks again. */
void ffm_planned_after_fork(ffm_planned *planned);

#endif
