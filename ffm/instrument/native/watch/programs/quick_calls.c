#include "quick_calls.h"

#include "calls_in_progress.h"
#include "dispatch.h"
#include "keys.h"
#include "own_dispatch.h"
#include "questions.h"
#include "quick_places.h"
#include "ranges.h"
#include "signals.h"
#include "system_calls.h"
#include "threads.h"

/* Thread-local variables have little room. */
__thread volatile bool ffm_quick_call_made __attribute__((tls_model("initial-exec"), visibility("hidden")));
static __thread volatile bool admitted __attribute__((tls_model("initial-exec")));

/* The thread is the one that these variables belong to, and no signal is wanted in place of its calls. */
static bool may_be_quick(void)
{
    return !ffm_threads_lost() && !ffm_signals_in_child() && !ffm_own_dispatch_is_on();
}

/* Handlers of the program that interrupt this end the call before it is made; the end that follows is then a second
 * one. */
bool ffm_quick_call_begins(uint64_t number, const uint64_t *arguments)
{
    ffm_plain_use used;
    ffm_quick_call_made = true;
    if (!ffm_system_call_is_plain(number, arguments, &used))
        return false;
    if (!ffm_dispatch_intercepts() || ffm_ranges_held())
        return true;
    if (!may_be_quick() || used.start + used.bytes < used.start)
        return false;
    admitted = ffm_keys_admit();
    return ffm_quick_call_in_progress_begins(number, used.start, used.start + used.bytes, used.writing, admitted) &&
           (used.bytes == 0 || !ffm_ranges_overlap(used.start, used.start + used.bytes));
}

void ffm_quick_call_over(void)
{
    ffm_quick_call_in_progress_over();
    if (admitted)
        ffm_keys_expel();
    admitted = false;
    ffm_quick_call_made = false;
}

void ffm_quick_call_interrupted(ucontext_t *interrupted)
{
    ffm_quick_call_in_progress_over();
    if (admitted)
        ffm_keys_expel_from(interrupted);
    admitted = false;
    ffm_quick_call_made = false;
    ffm_quick_place_leave(interrupted);
}
