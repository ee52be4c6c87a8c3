/* Every system call of the program, intercepted inside the process.
 *
 * If the kernel works on a protected page for the program, it returns EFAULT instead of raising a fault. System calls
 * also release and remap memory, and block signals. So all of them are intercepted first, by Syscall User Dispatch
 * (Linux 5.11, Documentation/admin-guide/syscall-user-dispatch.rst): a system call from outside the collector's own
 * code raises SIGSYS, whose handler makes the call. Measured on a 2-core Xeon VM with Linux 6.18: 1.2 us each. Calls
 * that the driver makes inside its own functions are let through. */
#ifndef FFM_DISPATCH_H
#define FFM_DISPATCH_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "program_handlers.h"

/* Start with the calling thread, and make all others of the process join. False if the kernel cannot do this. */
bool ffm_dispatch_open(void);

/* Start with the calling thread, which was unknown. */
void ffm_dispatch_join(void);

/* In a forked child, in which this is off. */
void ffm_dispatch_after_fork(void);

/* A handler of the program begins: its system calls are the program's, even if it interrupts a driver call. Returns
 * what its end leads back to. */
ffm_handler_end ffm_dispatch_handler_begins(void);

/* Let the calling thread's system calls through; resume restores the previous state. */
bool ffm_dispatch_pause(void);
void ffm_dispatch_resume(bool before);

/* Whether the calling thread's are intercepted. */
bool ffm_dispatch_intercepts(void);

/* The handler of SIGSYS. */
void ffm_dispatch_signal(int number, siginfo_t *info, void *context);

#endif
