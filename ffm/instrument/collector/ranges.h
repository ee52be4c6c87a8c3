/* The host ranges that are watched now, and the protection of their pages. Safe to use in signal handlers. */
#ifndef FFM_RANGES_H
#define FFM_RANGES_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint64_t start, end;
    uint64_t operation; /* of the transfer, within its thread */
    uint32_t thread;
    uint64_t stream;
    bool writes_only; /* the CPU may still read it: source of an upload in flight */
} ffm_range;

/* Watch a range. Returns false where its pages cannot be protected. */
bool ffm_ranges_add(const ffm_range *range);

/* Take one range that overlaps [start, end) out of the watch and give its pages back; false when there is none.
 * `writing` false: only ranges that may not be read either. */
bool ffm_ranges_take(uint64_t start, uint64_t end, bool writing, ffm_range *taken);

/* Take the watched source of an earlier upload that is the same memory on the same stream: the later one is done after
 * it. False when there is none. */
bool ffm_ranges_take_same_source(const ffm_range *range, ffm_range *taken);

/* Whether there is any; without the lock the answer may be old. */
bool ffm_ranges_any(void);

/* Whether a page holds part of a watched range. */
bool ffm_ranges_on_page(uint64_t page);

/* Open a page for one instruction, and protect it again as the ranges on it want. */
void ffm_ranges_open_page(uint64_t page);
void ffm_ranges_close_page(uint64_t page);

/* Forget all ranges and give all pages back. */
void ffm_ranges_clear(void);

#endif
