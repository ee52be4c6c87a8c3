/* What is done around forks of the program. */
#ifndef FFM_FORKS_H
#define FFM_FORKS_H

typedef struct {
    void (*before)(void);
    void (*in_parent)(void);
    void (*in_child)(void);    /* first of all, before it comes to the gate: free what threads of its parent held */
    void (*behind_gate)(void); /* in the child, when what attaches there has run code of its own; may be NULL */
} ffm_fork_handlers;

/* Call these from now on, beside what unwinding.h wants. Only the first call of a process and its children counts. */
void ffm_forks_handle(const ffm_fork_handlers *handlers);

#endif
