#include "starts.h"

#include <stdbool.h>
#include <stddef.h>

#include "samples.h"

enum { BEGINNING = 64 };

struct ffm_start {
    void *(*what)(void *);
    void *argument;
    bool taken;
};

static ffm_start starts[BEGINNING];

ffm_start *ffm_starts_take(void *(*what)(void *), void *argument)
{
    for (uint32_t i = 0; i < BEGINNING; i++) {
        if (__atomic_exchange_n(&starts[i].taken, true, __ATOMIC_ACQUIRE))
            continue;
        starts[i].what = what;
        starts[i].argument = argument;
        return &starts[i];
    }
    return NULL;
}

void ffm_starts_give_back(ffm_start *start)
{
    __atomic_store_n(&start->taken, false, __ATOMIC_RELEASE);
}

/* The last call is a jump, so that the thread's stack is as it would be without us. */
void *ffm_starts_run(void *start)
{
    const ffm_start program = *(ffm_start *)start;
    ffm_starts_give_back(start);
    ffm_samples_thread();
    return program.what(program.argument);
}
