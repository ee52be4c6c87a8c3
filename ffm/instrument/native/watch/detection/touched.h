/* What an instruction that faulted touches on the page of its fault: once that is open for it, nothing there faults. */
#ifndef FFM_TOUCHED_H
#define FFM_TOUCHED_H

#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

typedef struct {
    struct {
        uint64_t start, end;
        bool writing;
    } of[2];
    uint32_t count; /* at least 1: the access that faulted, or the whole page where its other places are not known */
} ffm_touched;

/* `address` is where it faulted, and `context` what it interrupted. Safe in signal handlers. */
ffm_touched ffm_touched_by(uint64_t address, bool writing, const ucontext_t *context);

#endif
