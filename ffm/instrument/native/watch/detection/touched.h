/* What an instruction that faulted touches. This must be known beforehand: once it is let through, nothing faults. */
#ifndef FFM_TOUCHED_H
#define FFM_TOUCHED_H

#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

typedef struct {
    struct {
        uint64_t start, end;
        bool writing;
    } of[3];
    uint32_t count; /* at least 1: the access that faulted, or the whole page where its other places are not known */
    bool known; /* whether it is complete: it touches nothing else on any page, except perhaps bytes before `of[0]` if
                   that begins a page */
} ffm_touched;

/* `address` is where it faulted, and `context` what it interrupted. Safe in signal handlers. */
ffm_touched ffm_touched_by(uint64_t address, bool writing, const ucontext_t *context);

#endif
