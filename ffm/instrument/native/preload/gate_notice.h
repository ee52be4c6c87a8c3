/* The dynamic linker's notification that a module is loaded or unloaded, which the instruments' agent hooks.
 *
 * The hook leads into the agent, but a forked child has only the code of its parent's agent: the threads that would
 * answer are gone. So the hook is active only in the process that the agent entered. */
#ifndef FFM_GATE_NOTICE_H
#define FFM_GATE_NOTICE_H

/* `notice` is the function that the dynamic linker calls (`r_brk` of link.h), before anybody has hooked it. */
void ffm_gate_notice_keep(void *notice);

/* The agent has entered this process: have its hook called only here. */
void ffm_gate_notice_hooked(void);

/* In a forked child, before its own agent arrives: restore the dynamic linker's code. */
void ffm_gate_notice_after_fork(void);

#endif
