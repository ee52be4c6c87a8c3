/* Keeps the descriptors of the instruments out of the program's way.
 *
 * The agent, which comes in at the gate, talks to the runner by descriptors of this process. Programs close descriptors
 * that they have not opened (daemons, shells), and put files of their own in such places. So the agent is made to get
 * high numbers, and what the C library closes for the program is anything but those. */
#ifndef FFM_GATE_DESCRIPTORS_H
#define FFM_GATE_DESCRIPTORS_H

/* Before the agent comes: note what is open, and take all low numbers. */
void ffm_gate_descriptors_before(void);

/* When it has come: free those again, and keep what is new. */
void ffm_gate_descriptors_after(void);

/* In a forked child: close what was kept, which is of no use without the threads of its parent's agent. */
void ffm_gate_descriptors_after_fork(void);

#endif
