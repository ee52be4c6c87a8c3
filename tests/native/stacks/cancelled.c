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

/* With any argument, the thread is the only one that may unwind. The status is 0, or says in bits what did not hold: it
 * went on within nested code; it came to the end; it was cancelled then; nobody is within any more. */
int main(int count, char **arguments)
{
    (void)arguments;
    const bool alone = count > 1;
    pthread_t thread;
    void *result = NULL;
    pthread_create(&thread, NULL, run, alone ? &thread : NULL);
    pthread_join(thread, &result);
    const bool free_again = ffm_unwinding_begin_alone();
    if (free_again)
        ffm_unwinding_end_alone();
    return (nested ? 0 : 1) | (unwound ? 0 : 2) | (result == PTHREAD_CANCELED ? 0 : 4) | (free_again ? 0 : 8);
}
