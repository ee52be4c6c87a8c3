/* What a thread sees of being cancelled while it unwinds a stack. */
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "unwinding.h"

static bool alone, at_once, unwound, nested;

static void *run(void *unused)
{
    int type;
    if (at_once)
        pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
    if (alone)
        ffm_unwinding_begin_alone();
    else
        ffm_unwinding_begin();
    pthread_cancel(pthread_self());
    ffm_unwinding_begin();
    pthread_testcancel();
    nested = true;
    ffm_unwinding_end();
    pthread_testcancel();
    unwound = true;
    if (alone)
        ffm_unwinding_end_alone();
    else
        ffm_unwinding_end();
    pthread_testcancel();
    return unused;
}

/* With the argument `alone`, the thread is the only one that may unwind. With `at-once` it is cancelled wherever it is,
 * as the C library demands while it waits in a system call, and not only at calls.
 *
 * The status is 0, or says in bits what did not hold: it went on within nested code; it came to the end; it was
 * cancelled then; nobody is within any more. */
int main(int count, char **arguments)
{
    for (int i = 1; i < count; i++) {
        alone |= strcmp(arguments[i], "alone") == 0;
        at_once |= strcmp(arguments[i], "at-once") == 0;
    }
    pthread_t thread;
    void *result = NULL;
    pthread_create(&thread, NULL, run, NULL);
    pthread_join(thread, &result);
    const bool free_again = ffm_unwinding_begin_alone();
    if (free_again)
        ffm_unwinding_end_alone();
    return (nested ? 0 : 1) | (unwound ? 0 : 2) | (result == PTHREAD_CANCELED ? 0 : 4) | (free_again ? 0 : 8);
}
