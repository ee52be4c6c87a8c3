/* Downloads that are delivered later (dissertation 7.3, DelayedCopies), but before anyone can tell.
 *
 * A download at a planned stack goes into pinned staging memory and returns at once. The pages of its destination stay
 * closed until the bytes are there. A touch by the program, a system call on them, a driver call that reads or writes
 * them, or a read of a clock that may rely on the wait first waits for the copy and delivers the bytes. Otherwise, the
 * next wait of the program delivers them. The GPU writes a word after the bytes, so that waiting needs no driver call:
 * a touch may happen inside one. */
#ifndef FFM_REMEDY_DOWNLOADS_H
#define FFM_REMEDY_DOWNLOADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "late.h"

/* Whether a download can be deferred; reserves room for it. */
bool ffm_downloads_begin(ffm_download_late *download);

/* The download was enqueued: close its destination. If that fails, wait for it and deliver. */
void ffm_downloads_close(const ffm_download_late *download);

/* The program's own transfer was enqueued on a stream, from (`source`) or to pinned memory, and its wait was removed:
 * close that memory until the transfer is done. False if that is not possible. */
bool ffm_downloads_close_transfer(uint64_t start, size_t bytes, bool source, uint64_t stream);

/* Before a fork everything is delivered, and nothing is deferred until the fork is over. In the child nothing is
 * closed. */
void ffm_downloads_before_fork(void);
void ffm_downloads_forked(void);
void ffm_downloads_after_fork(void);

#endif
