/* A program that asks its parent to trace it (PTRACE_TRACEME), as some do to keep debuggers away.
 *
 * The parent of its first process is the runner, which does not trace: each signal, also those of the memory watch,
 * would stop the program for ever. So that process gets the kernel's answers, but is not traced. */
#ifndef FFM_GATE_TRACING_H
#define FFM_GATE_TRACING_H

/* At the start of a process: note who the runner is. */
void ffm_gate_tracing_start(void);

#endif
