/* What the process has mapped. */
#ifndef FFM_MAPPINGS_H
#define FFM_MAPPINGS_H

#include <stdbool.h>
#include <stdint.h>

/* Whether [start, end) contains memory that other mappings or processes may see: protecting its pages here would detect
 * only some accesses. Allocates memory, so not for signal handlers. True if it cannot be determined. */
bool ffm_mappings_shared(uint64_t start, uint64_t end);

/* The mapping that contains an address; false if there is none. Safe in signal handlers. */
bool ffm_mappings_around(uint64_t address, uint64_t *start, uint64_t *end);

typedef struct {
    uint64_t start, end;
    bool writable, is_private;
    bool of_file; /* of a file that its path leads to: not deleted, and not made by memfd_create */
} ffm_mapping;

/* The mapping that contains an address; all 0 if there is none. Safe in signal handlers. */
ffm_mapping ffm_mappings_at(uint64_t address);

/* Whether all of [start, end) is mapped and readable. Safe in signal handlers. */
bool ffm_mappings_readable(uint64_t start, uint64_t end);

enum { FFM_MAPPED_STRETCHES = 256 };

/* Everything that is mapped, as stretches without gaps, in ascending order. */
typedef struct {
    bool unknown; /* there are too many, or they cannot be read */
    uint32_t count;
    struct {
        uint64_t start, end;
    } stretches[FFM_MAPPED_STRETCHES];
} ffm_mapped;

/* Find all of it, for callers that ask about many addresses. It takes as long as a few hundred questions to the kernel.
 * Safe in signal handlers. */
void ffm_mappings_all(ffm_mapped *mapped);

/* Whether an address may be mapped. O(log n). */
bool ffm_mapped_may_hold(const ffm_mapped *mapped, uint64_t address);

/* Mappings were removed or replaced: what was known about them no longer holds. Safe in signal handlers. */
void ffm_mappings_changed(void);

/* A child is forked. From now on, anonymous shared memory may be used by both processes at any time. */
void ffm_mappings_inherited(void);

/* In a forked child, where a thread that no longer exists may have been searching. */
void ffm_mappings_after_fork(void);

#endif
