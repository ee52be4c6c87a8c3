/* Threads that make heap blocks with pages of their own at the same moments. Ends with 1 if the peak was ever not what
 * all of them had together. The blocks are only addresses. */
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#define free marked_free
#define realloc marked_realloc
#include "marks.c"

enum { THREADS = 2, ROUNDS = 20000, BLOCK = 2 * PAGE };

static const uint64_t first_block = (uint64_t)1 << 40;
static uint64_t peak, arrived, wrong;

static void ignore(uint64_t start, uint64_t end)
{
    (void)start, (void)end;
}

static const ffm_marks_observer told = {&peak, (uint64_t)1 << 40, ignore};

static void meet(uint64_t times)
{
    __atomic_add_fetch(&arrived, 1, __ATOMIC_ACQ_REL);
    while (__atomic_load_n(&arrived, __ATOMIC_ACQUIRE) < times * THREADS)
        sched_yield();
}

static void *work(void *opaque)
{
    const uint64_t number = (uint64_t)opaque;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        const uint64_t block = first_block + (round * THREADS + number) * BLOCK;
        meet(3 * round + 1);
        ffm_marks_block((void *)block, BLOCK);
        meet(3 * round + 2);
        if (number == 0)
            wrong += __atomic_load_n(&peak, __ATOMIC_RELAXED) != THREADS * (round + 1) * COST;
        if (!ffm_marks_of_heap()->own(block, block + BLOCK))
            exit(2);
        meet(3 * round + 3);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    ffm_marks_of_heap()->observe(&told);
    for (uint64_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    if (wrong != 0)
        fprintf(stderr, "the peak was wrong in %d of %d rounds\n", (int)wrong, ROUNDS);
    return wrong != 0;
}
