#include "trace_handlers.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include "instruments.h"
#include "trace.h"
#include "watch.h"

typedef void (*handler)(int, siginfo_t *, void *);
typedef int (*function)(int, const struct sigaction *, struct sigaction *);

static function original_sigaction;
static handler handlers[NSIG]; /* the program's */

/* The kernel gives all three arguments to any handler. */
static void handle(int number, siginfo_t *info, void *context)
{
    const int error = errno;
    if (ffm_watch_active())
        ffm_watch_give_up();
    errno = error;
    __atomic_load_n(&handlers[number], __ATOMIC_ACQUIRE)(number, info, context);
}

static bool is_function(const struct sigaction *action)
{
    return action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN;
}

static int wrap_sigaction(int number, const struct sigaction *wanted, struct sigaction *before)
{
    while (__atomic_load_n(&original_sigaction, __ATOMIC_ACQUIRE) == NULL)
        __builtin_ia32_pause();
    if (number <= 0 || number >= NSIG || ffm_instruments_hold((uint64_t)__builtin_return_address(0)))
        return original_sigaction(number, wanted, before);
    struct sigaction ours;
    const handler previous = handlers[number];
    if (wanted != NULL && is_function(wanted)) {
        ours = *wanted;
        __atomic_store_n(&handlers[number], wanted->sa_sigaction, __ATOMIC_RELEASE);
        ours.sa_sigaction = handle;
        wanted = &ours;
    }
    const int result = original_sigaction(number, wanted, before);
    if (result != 0)
        handlers[number] = previous;
    else if (before != NULL && before->sa_sigaction == handle)
        before->sa_sigaction = previous;
    return result;
}

const char *ffm_trace_handlers_name(uint32_t place)
{
    return place == 0 ? "sigaction" : NULL;
}

void *ffm_trace_handlers_wrapper(uint32_t place)
{
    (void)place;
    return ffm_trace_on() && original_sigaction == NULL ? (void *)(uintptr_t)wrap_sigaction : NULL;
}

void ffm_trace_handlers_bind(uint32_t place, void *original)
{
    (void)place;
    __atomic_store_n(&original_sigaction, (function)(uintptr_t)original, __ATOMIC_RELEASE);
}
