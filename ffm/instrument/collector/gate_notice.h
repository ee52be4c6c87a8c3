/* The dynamic linker's notice that a module comes or goes, on which the instruments' agent puts its hook.
 *
 * The hook leads into the agent, and a child has only the code of its parent's: the threads that would answer it are
 * gone. So it is for the process that the agent came into, and no other. */
#ifndef FFM_GATE_NOTICE_H
#define FFM_GATE_NOTICE_H

/* `notice` is the function that the dynamic linker calls (`r_brk` of link.h), before anybody has hooked it. */
void ffm_gate_notice_keep(void *notice);

/* The agent has come into this process: have its hook called here alone. */
void ffm_gate_notice_hooked(void);

/* In a forked child, before its own agent comes: put the dynamic linker's code back. */
void ffm_gate_notice_after_fork(void);

#endif
