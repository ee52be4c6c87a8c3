/* Access to the program's memory that may be unmapped or protected, now or at any moment: where the kernel answers
 * EFAULT, or the driver an error, the program must not end. */
#ifndef FFM_GUARDED_H
#define FFM_GUARDED_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

/* Call `action(context)`, which reads the program's memory in [start, end). If it faults there, it is abandoned at
 * once, and false is returned; so it must hold no lock while it reads. Costs a few nanoseconds.
 *
 * The trace watch runs a translation, which cannot be left by a jump. There, the range is examined first. */
bool ffm_guarded(void (*action)(void *context), void *context, uint64_t start, uint64_t end);

/* memcpy, of which one side is the program's. Returns whether all was copied. */
bool ffm_guarded_read(void *to, uint64_t from, uint64_t bytes);
bool ffm_guarded_write(uint64_t to, const void *from, uint64_t bytes);

/* Whether the kernel can read [start, end), a system call for each 64 pages. For handlers of signals in which nobody
 * handles a fault. */
bool ffm_guarded_readable(uint64_t start, uint64_t end);

/* Length of a string of the program with its end; 0 if it does not end in readable memory. */
uint64_t ffm_guarded_text(uint64_t start);

/* In the handler of a fault that is not the watch's: whether an action of this thread caused it, which is then left. */
bool ffm_guarded_abandon(const siginfo_t *info, ucontext_t *context);

#endif
