/* Downloads that are delivered late (dissertation 7.3, DelayedCopies), but before anything can tell.
 *
 * A download at a planned stack goes into pinned staging and returns at once. The pages of its destination are closed
 * until the bytes are there: a touch by the program, a system call on them, or a driver call that reads or writes them
 * delivers first, waiting for the copy; without such, a wait that the program makes anyway delivers. The GPU writes a
 * word behind the bytes, so that waiting needs no call of the driver: a touch may happen inside of one. */
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

/* A download under way to be late. */
typedef struct {
    uint64_t to;
    size_t bytes;
    bool direct; /* the GPU writes the destination itself, which is pinned */
    bool source; /* direct, and the GPU only reads it: it is closed to writes alone */
    ffm_staged piece;
    void *into;     /* where the GPU writes */
    uint32_t *done; /* what it sets to 1 afterwards */
    uint64_t stream;
} ffm_download_late;

/* Whether a download can be late, and room for it. */
bool ffm_downloads_begin(ffm_download_late *download);

/* It was enqueued: close its destination. Where that fails, wait for it, and deliver. */
void ffm_downloads_close(const ffm_download_late *download);

/* A transfer of the program's own was enqueued on a stream, from (`source`) or to pinned memory, and a wait for it is
 * left out: close that memory until the transfer is done. False where that is not possible. */
bool ffm_downloads_close_transfer(uint64_t start, size_t bytes, bool source, uint64_t stream);

/* Deliver what is there already. */
void ffm_downloads_settle(void);

/* Deliver all that lies on the pages of [start, end), waiting where need be. True where there was any. */
bool ffm_downloads_deliver(uint64_t start, uint64_t end, uint64_t *why);

/* Deliver everything; no download is late any more. `off`: nor will any be. */
void ffm_downloads_deliver_all(uint64_t *why, bool off);

/* Deliver what a driver call may read or write on the CPU: what its arguments point at. */
void ffm_downloads_before_call(const uint64_t *arguments, int count);

/* Before a fork all is delivered, and until it is over nothing becomes late; in the child nothing is closed. */
void ffm_downloads_before_fork(void);
void ffm_downloads_forked(void);
void ffm_downloads_after_fork(void);

#endif
