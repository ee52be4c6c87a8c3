/* Every system call of the program, seen from inside the process.
 *
 * The kernel answers EFAULT where it is to work on a protected page for the program, instead of a fault; memory is
 * given back and mapped elsewhere, and signals are held back, by system calls too. So all of them come by here first,
 * through Syscall User Dispatch (Linux 5.11, Documentation/admin-guide/syscall-user-dispatch.rst): a system call from
 * outside the collector's own code raises SIGSYS, whose handler does the call. Measured on a 2-core Xeon VM with
 * Linux 6.18: 1.2 us for each. Calls that the driver makes inside its own functions are let through. */
#ifndef FFM_DISPATCH_H
#define FFM_DISPATCH_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* Begin with the calling thread, and have all others of the process join. False where the kernel cannot do this. */
bool ffm_dispatch_open(void);

/* Begin with the calling thread, which was unknown. */
void ffm_dispatch_join(void);

/* The program goes on after it has begun a process. */
void ffm_dispatch_forked(void);

/* In a forked child, in which it is off. */
void ffm_dispatch_after_fork(void);

/* Let the calling thread's system calls through, and take them up again as they were. */
bool ffm_dispatch_pause(void);
void ffm_dispatch_resume(bool before);

/* The handler of SIGSYS. */
void ffm_dispatch_signal(int number, siginfo_t *info, void *context);

#endif
