/* Downloads that are delivered later (dissertation 7.3, DelayedCopies), but before anyone can tell.
 *
 * A download at a planned stack goes into pinned staging memory and returns at once. The pages of its destination stay
 * closed until the bytes are there. A touch by the program, a system call on them, or a driver call that reads or
 * writes them waits for the copy and delivers first; otherwise the next wait of the program delivers. The GPU writes a
 * word after the bytes, so that waiting needs no driver call: a touch may happen inside one. */
#ifndef FFM_REMEDY_DOWNLOADS_H
#define FFM_REMEDY_DOWNLOADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "counters.h"
#include "staging.h"

/* Number of downloads not delivered yet. */
extern uint32_t ffm_downloads_late;

static inline bool ffm_downloads_pending(void)
{
    return __builtin_expect(__atomic_load_n(&ffm_downloads_late, __ATOMIC_ACQUIRE) != 0, 0);
}

/* A download that is being deferred. */
typedef struct {
    uint64_t to;
    size_t bytes;
    bool direct; /* the GPU writes directly to the destination, which is pinned */
    bool source; /* direct, and the GPU only reads it: it is closed to writes only */
    ffm_staged piece;
    void *into;     /* where the GPU writes */
    uint32_t *done; /* what it sets to 1 afterwards */
    uint64_t stream;
    uint32_t unit; /* whose correction deferred it, or FFM_NO_UNIT (trials.h) */
} ffm_download_late;

/* Whether a download can be deferred; reserves room for it. */
bool ffm_downloads_begin(ffm_download_late *download);

/* The download was enqueued: close its destination. If that fails, wait for it and deliver. */
void ffm_downloads_close(const ffm_download_late *download);

/* The program's own transfer was enqueued on a stream, from (`source`) or to pinned memory, and its wait was removed:
 * close that memory until the transfer is done. False if that is not possible. */
bool ffm_downloads_close_transfer(uint64_t start, size_t bytes, bool source, uint64_t stream);

/* Deliver what has already arrived. */
void ffm_downloads_settle(void);

/* Deliver everything on the pages of [start, end), waiting if necessary. True if there was anything. */
bool ffm_downloads_deliver(uint64_t start, uint64_t end, uint64_t *why);

/* Deliver everything, so that no download is pending. `off`: none will be deferred from now on. */
void ffm_downloads_deliver_all(uint64_t *why, bool off);

/* Deliver what a driver call may read or write on the CPU: whatever its arguments point to. */
void ffm_downloads_before_call(const uint64_t *arguments, int count);

/* Before a fork everything is delivered, and nothing is deferred until the fork is over. In the child nothing is
 * closed. */
void ffm_downloads_before_fork(void);
void ffm_downloads_forked(void);
void ffm_downloads_after_fork(void);

#endif
