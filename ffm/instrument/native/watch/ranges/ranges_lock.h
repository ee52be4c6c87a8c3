/* The lock of the table of watched ranges, and its version, for those who look at the table without the lock. */
#ifndef FFM_RANGES_LOCK_H
#define FFM_RANGES_LOCK_H

#include <stdbool.h>
#include <stdint.h>

/* Outside signal handlers, signals are blocked meanwhile: a handler of the program could touch a watched page. */
void ffm_ranges_lock(void);
void ffm_ranges_unlock(void);
void ffm_ranges_lock_in_handler(void);
void ffm_ranges_unlock_in_handler(void);

/* Whether the calling thread holds the lock. */
bool ffm_ranges_held(void);

/* Around each change, locked: a range moves, is opened or changes its size. Those who ask without the lock must not
 * miss a range that is on its way from one place to another, or whose pages are still to be opened. Not nested, but for
 * changes while protection is put off. */
void ffm_ranges_begin_change(void);
void ffm_ranges_end_change(void);

/* For questions without the lock (questions.h): the version of the table before one, and whether its answer may be
 * wrong, because another thread has changed the table or is about to. A sequence lock's reader (H.-J. Boehm, "Can
 * seqlocks get along with programming language memory models?", 2012). */
uint32_t ffm_ranges_version(void);
bool ffm_ranges_changed(uint32_t version);

/* In a forked child, where a thread that no longer exists may have been changing the table. */
void ffm_ranges_begin_versions(void);

#endif
