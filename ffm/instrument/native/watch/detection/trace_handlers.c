#include "trace_handlers.h"

#include <errno.h>
#include <signal.h>

#include "instruments.h"
#include "traced.h"
#include "watched.h"

typedef void (*handler)(int, siginfo_t *, void *);
typedef int (*function)(int, const struct sigaction *, struct sigaction *);

static handler handlers[NSIG]; /* the program's */

/* The kernel gives all three arguments to any handler. */
static void handle(int number, siginfo_t *info, void *context)
{
    const int error = errno;
    ffm_trace_handler_begins();
    if (ffm_watch_active())
        ffm_watch_give_up();
    errno = error;
    __atomic_load_n(&handlers[number], __ATOMIC_ACQUIRE)(number, info, context);
    ffm_trace_handler_over();
}

static bool is_function(const struct sigaction *action)
{
    return action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN;
}

static int wrap_sigaction(int number, const struct sigaction *wanted, struct sigaction *before)
{
    const function original = (function)ffm_followed_original(&ffm_trace_handlers[0]);
    if (number <= 0 || number >= NSIG || ffm_instruments_hold((uint64_t)__builtin_return_address(0)))
        return original(number, wanted, before);
    struct sigaction ours;
    const handler previous = handlers[number];
    if (wanted != NULL && is_function(wanted)) {
        ours = *wanted;
        __atomic_store_n(&handlers[number], wanted->sa_sigaction, __ATOMIC_RELEASE);
        ours.sa_sigaction = handle;
        wanted = &ours;
    }
    const int result = original(number, wanted, before);
    if (result != 0)
        handlers[number] = previous;
    else if (before != NULL && before->sa_sigaction == handle)
        before->sa_sigaction = previous;
    return result;
}

ffm_followed ffm_trace_handlers[] = {{FFM_FOLLOWED(sigaction), .wanted = ffm_trace_on}, {.name = NULL}};
