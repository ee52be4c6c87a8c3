/* What happens around forks of the program. */
#ifndef FFM_FORKS_H
#define FFM_FORKS_H

#include <stdbool.h>

typedef struct {
    void (*before)(void);
    void (*in_parent)(void);
    void (*in_child)(void);    /* first of all, before the gate: release what threads of the parent held */
    void (*behind_gate)(void); /* in the child, after whatever attaches there has run its own code; may be NULL */
} ffm_fork_handlers;

/* Whether the process may have forked by now, or been forked. */
bool ffm_forks_happened(void);

/* Call these from now on, in addition to what unwinding.h needs. Only the first call of a process and its children
 * counts. */
void ffm_forks_handle(const ffm_fork_handlers *handlers);

/* Whether the calling thread is in the C library's fork. */
bool ffm_forks_here(void);

#endif
