#include "signal_handlers.h"

#include <signal.h>

#include "instruments.h"
#include "sample_clock.h"

typedef int (*function)(int, const struct sigaction *, struct sigaction *);

static bool added[NSIG]; /* whether the program's handler does not block the signal itself */

static bool runs_there(const struct sigaction *action)
{
    return action->sa_flags & SA_ONSTACK && action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN &&
           sigismember(&action->sa_mask, FFM_SAMPLE_SIGNAL) == 0;
}

static int wrap_sigaction(int number, const struct sigaction *wanted, struct sigaction *before)
{
    const function original = (function)ffm_followed_original(&ffm_signal_handlers[0]);
    if (number <= 0 || number >= NSIG || number == FFM_SAMPLE_SIGNAL ||
        ffm_instruments_hold((uint64_t)__builtin_return_address(0)))
        return original(number, wanted, before);
    struct sigaction ours;
    const bool adds = wanted != NULL && runs_there(wanted), was_added = added[number];
    if (adds) {
        ours = *wanted;
        sigaddset(&ours.sa_mask, FFM_SAMPLE_SIGNAL);
    }
    const int result = original(number, adds ? &ours : wanted, before);
    if (result == 0 && before != NULL && was_added)
        sigdelset(&before->sa_mask, FFM_SAMPLE_SIGNAL);
    if (result == 0 && wanted != NULL)
        added[number] = adds;
    return result;
}

ffm_followed ffm_signal_handlers[] = {{FFM_FOLLOWED(sigaction)}, {.name = NULL}};
