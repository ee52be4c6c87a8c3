/* The list of pending downloads, and the closed pages that hide them. */
#ifndef FFM_REMEDY_LATE_H
#define FFM_REMEDY_LATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

enum { FFM_PAGE = 4096 };

static inline uint64_t ffm_page_of(uint64_t address)
{
    return address & ~(uint64_t)(FFM_PAGE - 1);
}

static inline uint64_t ffm_page_after(uint64_t address)
{
    return ffm_page_of(address + FFM_PAGE - 1);
}

/* Open this process's own memory, so that closed pages can be written. */
bool ffm_late_open(void);

/* Defer nothing from now on. */
void ffm_late_off(void);
bool ffm_late_is_off(void);

/* Whether any are pending, or one is being deferred just now. */
bool ffm_late_busy(void);

/* Whether there is room for another one. */
bool ffm_late_has_room(void);

/* Close the pages of a download, and add it. If that is not possible, as while a system call uses memory there, change
 * nothing and return false. */
bool ffm_late_add(const ffm_download_late *it);

/* Wait for the GPU. False if it will never finish because the context is in error. */
bool ffm_late_await(const ffm_download_late *it);

/* Whether an earlier one must be delivered before this one can be deferred: they overlap, or the earlier one closes
 * pages to reads that this one leaves open to reads. Others on the same pages can stay pending. */
bool ffm_late_is_in_the_way_of(const ffm_download_late *it);

/* Deliver everything on the pages [first, last), and on pages shared with those. True if there was anything. */
bool ffm_late_deliver(uint64_t first, uint64_t last, uint64_t *why);

/* Deliver what has already arrived. */
void ffm_late_settle(void);

/* Changes whenever the list does. */
uint32_t ffm_late_version(void);

/* A fork begins, or is over in the parent: nothing is deferred in between. */
void ffm_late_fork(bool begins);

/* In a forked child. */
void ffm_late_forget(void);

#endif
