/* Leads the programs that this one executes to the gate, whatever environment it gives them.
 *
 * A program comes to the gate because its environment says so (LD_PRELOAD, FFM_GATE). But shells, services and job
 * launchers clean environments. So what is missing is put in when a program is executed, and taken out again before
 * that program's own code runs: it finds the environment that it was given. */
#ifndef FFM_GATE_PROGRAMS_H
#define FFM_GATE_PROGRAMS_H

/* At the start of a process: keep what leads to the gate, take out what was put in, and see to the programs that it
 * will execute. */
void ffm_gate_programs_lead(void);

/* The path of the runner's socket, or NULL. Known even if the program has cleared its environment. */
const char *ffm_gate_programs_socket(void);

#endif
