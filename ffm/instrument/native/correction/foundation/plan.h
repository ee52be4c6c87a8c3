/* Which call sites are corrected, and how. */
#ifndef FFM_REMEDY_PLAN_H
#define FFM_REMEDY_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "remedy_records.h"

/* Map the plan. False if it cannot be read, or is not sound. */
bool ffm_plan_open(const char *path);

uint32_t ffm_plan_sites(void);

/* Bytes that corrections may take. */
size_t ffm_plan_memory(void);

/* Index of a site in the plan. */
uint32_t ffm_plan_number(const ffm_remedy_site *site);

/* Whether some site calls this function; only then is it worth capturing its stack. */
bool ffm_plan_has_function(uint32_t function);

/* The site of a call by its stack's number (ffm_stack_here); NULL if the plan has none. After the first call from a
 * stack this is an array access. */
const ffm_remedy_site *ffm_plan_site(uint32_t function, uint32_t stack);

/* A forked child numbers stacks from the start. */
void ffm_plan_after_fork(void);

#endif
