/* The list of late downloads, and the closed pages that they lie behind. For downloads.c and touches.c. */
#ifndef FFM_REMEDY_LATE_H
#define FFM_REMEDY_LATE_H

#include "downloads.h"

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

/* Nothing will be late any more. */
void ffm_late_off(void);
bool ffm_late_is_off(void);

/* Whether there is room for another one. */
bool ffm_late_has_room(void);

/* Close the pages of a download, and add it. False, and nothing is done, where that is not possible. */
bool ffm_late_add(const ffm_download_late *it);

/* Wait for the GPU. False where it will not come to it, since the context is in error. */
bool ffm_late_await(const ffm_download_late *it);

/* Whether an earlier one has to be delivered before this one can be late: they lie on the same bytes, or the earlier
 * one closes pages to reads that this one leaves open to them. Others on the same pages stay late beside it. */
bool ffm_late_is_in_the_way_of(const ffm_download_late *it);

/* Deliver all on the pages [first, last), and on those that they share with others. True where there was any. */
bool ffm_late_deliver(uint64_t first, uint64_t last, uint64_t *why);

/* Changes with the list. */
uint32_t ffm_late_version(void);

/* A fork begins, or is over in the parent: meanwhile nothing becomes late. */
void ffm_late_fork(bool begins);

/* In a forked child. */
void ffm_late_forget(void);

#endif
