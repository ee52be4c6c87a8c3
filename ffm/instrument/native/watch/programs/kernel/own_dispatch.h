/* Syscall User Dispatch that the program asks for itself, as Wine does. A thread can have it only once, and the watch
 * has it already. So the system calls that the program wants to see are picked here from those that the watch sees. */
#ifndef FFM_OWN_DISPATCH_H
#define FFM_OWN_DISPATCH_H

#include <stdbool.h>
#include <stdint.h>

enum { FFM_SET_SYSCALL_USER_DISPATCH = 59 }; /* PR_SET_SYSCALL_USER_DISPATCH of linux/prctl.h (Linux 5.11) */

/* In place of the program's prctl(PR_SET_SYSCALL_USER_DISPATCH, …): answers as the kernel does. */
int64_t ffm_own_dispatch_set(const uint64_t *arguments);

/* Whether the program wants a signal in place of the system call that ends at this address. */
bool ffm_own_dispatch_wants(uint64_t instruction);

/* Whether the program has asked for it in this thread. */
bool ffm_own_dispatch_is_on(void);

/* A forked child begins without. */
void ffm_own_dispatch_after_fork(void);

#endif
