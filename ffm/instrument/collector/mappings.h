/* What the process has mapped. */
#ifndef FFM_MAPPINGS_H
#define FFM_MAPPINGS_H

#include <stdbool.h>
#include <stdint.h>

/* Whether memory that other mappings or processes may see lies in [start, end): protecting its pages here would hide
 * only some of the accesses. Takes memory: not for signal handlers. True where it cannot be found out. */
bool ffm_mappings_shared(uint64_t start, uint64_t end);

/* The mapping that an address lies in; false where there is none. Safe in signal handlers. */
bool ffm_mappings_around(uint64_t address, uint64_t *start, uint64_t *end);

/* Mappings went or were replaced: what was known of them is not. Safe in signal handlers. */
void ffm_mappings_changed(void);

/* In a forked child: a thread that is gone may have been asking. */
void ffm_mappings_after_fork(void);

#endif
