/* Leads the programs that this one executes to the gate, whatever environment it gives them.
 *
 * A program comes to the gate because its environment says so (LD_PRELOAD, FFM_GATE). Programs clean environments:
 * shells, services, job launchers. So what is missing is put in when a program is executed, and taken out again before
 * that program's own code runs, which finds the environment that it was given. */
#ifndef FFM_GATE_PROGRAMS_H
#define FFM_GATE_PROGRAMS_H

/* At the start of a process: keep what leads to the gate, take out what was put in, and see to the programs that it
 * will execute. */
void ffm_gate_programs_lead(void);

/* The path of the runner's socket, or NULL: also where the program has cleared its environment. */
const char *ffm_gate_programs_socket(void);

#endif
