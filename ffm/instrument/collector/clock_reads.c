#define UNW_LOCAL_ONLY
#include "clock_reads.h"

#include <libunwind.h>
#include <stddef.h>

#include "accesses.h"
#include "clock.h"
#include "foreign.h"
#include "instruments.h"
#include "ranges.h"
#include "records.h"
#include "thread.h"
#include "unwinding.h"
#include "watch.h"

enum { FUNCTION = 1024, INTERPRETER_LOCKS = 4, NEAR_FRAMES = 6 };

static struct {
    uint32_t count;
    uint64_t functions[INTERPRETER_LOCKS];
} interpreter_locks;

void ffm_clock_interpreter_lock(uint64_t function)
{
    if (function != 0 && interpreter_locks.count < INTERPRETER_LOCKS)
        interpreter_locks.functions[interpreter_locks.count++] = function;
}

/* Python reads a clock whenever it takes a lock; that is not the program's own read. */
static __attribute__((noinline)) bool in_interpreter_lock(void)
{
    uint64_t frames[NEAR_FRAMES];
    if (interpreter_locks.count == 0)
        return false;
    ffm_unwinding_begin();
    const int depth = unw_backtrace((void **)frames, NEAR_FRAMES);
    ffm_unwinding_end();
    for (int i = 0; i < depth; i++)
        for (uint32_t k = 0; k < interpreter_locks.count; k++)
            if (frames[i] - interpreter_locks.functions[k] < FUNCTION)
                return true;
    return false;
}

void ffm_clock_read(const void *caller)
{
    static __thread bool read_before __attribute__((tls_model("initial-exec")));
    static __thread uint64_t noted __attribute__((tls_model("initial-exec")));
    ffm_thread *thread = ffm_thread_peek();
    if ((thread != NULL && (thread->depth != 0 || thread->bypass != 0 || noted == thread->operations.written)) ||
        ffm_instruments_hold((uint64_t)caller) || ffm_foreign_holds((uint64_t)caller) || in_interpreter_lock())
        return;
    bool earlier = read_before;
    read_before = true;
    if (thread == NULL || !ffm_watch_wants_stacks() || thread->operations.written == 0)
        return;
    noted = thread->operations.written;
    const ffm_range nothing = {.operation = noted, .thread = thread->number};
    ffm_ranges_lock();
    ffm_access_record(&nothing, FFM_ACCESS_CLOCK, 0, earlier, ffm_now(), 0);
    ffm_ranges_unlock();
}
