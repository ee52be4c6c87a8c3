/* What a thread sees of being cancelled while it unwinds a stack. */
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "unwinding.h"

static bool unwound, nested;

static void *run(void *alone)
{
    if (alone != NULL)
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
    if (alone != NULL)
        ffm_unwinding_end_alone();
    else
        ffm_unwinding_end();
    pthread_testcancel();
    return NULL;
}

/* Bits: it went on within nested code; it came to the end; it was cancelled then; nobody is within any more. */
int cancelled_while_unwinding(bool alone)
{
    pthread_t thread;
    void *result = NULL;
    unwound = nested = false;
    pthread_create(&thread, NULL, run, alone ? &thread : NULL);
    pthread_join(thread, &result);
    const bool free_again = ffm_unwinding_begin_alone();
    if (free_again)
        ffm_unwinding_end_alone();
    return nested | unwound << 1 | (result == PTHREAD_CANCELED) << 2 | free_again << 3;
}
