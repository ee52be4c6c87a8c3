/* Reads and writes memory of the program whose pages are closed, without opening them: through /proc/self/mem, where
 * the kernel ignores the protection of pages (proc_pid_mem(5)). Opening and closing a page takes three times as long.
 * An access is not made at once, so no other thread may make one to the same bytes. Safe in signal handlers. */
#ifndef FFM_CLOSED_MEMORY_H
#define FFM_CLOSED_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* False if the kernel does not allow it, also for some memory of the driver's; then nothing is written. */
bool ffm_closed_memory_read(uint64_t address, void *to, uint32_t bytes);
bool ffm_closed_memory_write(uint64_t address, const void *from, uint32_t bytes);

/* Whether the kernel lets this process write to closed pages at all: it may be told not to (proc_mem.force_override).
 * Tries it, the first time. */
bool ffm_closed_memory_may_write(void);

/* The program has made a system call, or is about to. It may close the file, so whether the file is still there is
 * looked at before the next access. */
void ffm_closed_memory_doubt(void);

/* The program is about to filter its system calls, and may forbid those that this takes: none is made any more. */
void ffm_closed_memory_stop(void);

/* In a forked child: the file is the parent's memory. */
void ffm_closed_memory_after_fork(void);

#endif
