/* Access to memory of the program that may be unmapped or protected, now or at any moment. Where the kernel would
 * answer EFAULT, or the driver an error, the program must not crash because of us. */
#ifndef FFM_GUARDED_H
#define FFM_GUARDED_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

/* Call `action(context)`, which reads the program's memory in [start, end). If it faults there, it is abandoned at
 * once, and false is returned; so it must hold no lock while it reads. Costs a few nanoseconds.
 *
 * Under the trace watch, a translation of this code runs, which cannot be left by a jump. The range is then examined
 * first. */
bool ffm_guarded(void (*action)(void *context), void *context, uint64_t start, uint64_t end);

/* memcpy where one side is the program's memory. Returns whether everything was copied. */
bool ffm_guarded_read(void *to, uint64_t from, uint64_t bytes);
bool ffm_guarded_write(uint64_t to, const void *from, uint64_t bytes);

/* Whether the kernel can read [start, end), a system call for each 64 pages. For signal handlers in which nobody
 * handles a fault. */
bool ffm_guarded_readable(uint64_t start, uint64_t end);

/* Bytes of a string of the program, with its terminating zero; 0 if it does not end in readable memory. */
uint64_t ffm_guarded_text(uint64_t start);

/* In the handler of a fault that is not the watch's: whether an action of this thread caused it. If so, that action is
 * abandoned. */
bool ffm_guarded_abandon(const siginfo_t *info, ucontext_t *context);

#endif
