/* Keeps the descriptors of the instruments out of the program's way.
 *
 * The agent, which enters at the gate, talks to the runner through descriptors of this process. Some programs (daemons,
 * shells) close descriptors that they have not opened, and put their own files in such places. So the agent is made to
 * get high numbers, and what the C library closes for the program never includes those. */
#ifndef FFM_GATE_DESCRIPTORS_H
#define FFM_GATE_DESCRIPTORS_H

#include <stdbool.h>

/* Before the agent arrives: note what is open, and take all low numbers. */
void ffm_gate_descriptors_before(void);

/* After it has arrived: free those again, and keep what is new. */
void ffm_gate_descriptors_after(void);

/* Whether the program has closed all that was kept, by system calls of its own. */
bool ffm_gate_descriptors_lost(void);

/* In a forked child: close what was kept, which is useless without the threads of its parent's agent. */
void ffm_gate_descriptors_after_fork(void);

#endif
