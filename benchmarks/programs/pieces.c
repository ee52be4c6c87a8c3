/* pieces NUMBER DEPTH: the CPU does the same work NUMBER times, some 20 ms each, DEPTH functions deep, and calls the
 * driver after each.
 *
 * Prints the processor time of each, in nanoseconds. */
#include <stdio.h>
#include <stdlib.h>

#include "clocks.h"
#include "driver.h"

enum { STEPS = 15000000 };

static volatile unsigned seen;

__attribute__((noinline)) static unsigned work(unsigned word, long depth)
{
    if (depth > 1) {
        word = work(word, depth - 1);
        __asm__ volatile("" : "+r"(word)); /* so that the compiler makes no loop of it */
        return word;
    }
    for (unsigned step = 0; step < STEPS; step++)
        word = word * 2654435761U + step;
    return word;
}

int main(int count, char **arguments)
{
    if (count != 3 || atol(arguments[1]) < 1 || atol(arguments[2]) < 1) {
        fprintf(stderr, "usage: pieces NUMBER DEPTH\n");
        return 2;
    }
    open_driver();
    for (long piece = 0; piece < atol(arguments[1]); piece++) {
        const double began = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        seen = work((unsigned)piece, atol(arguments[2]));
        printf("%.0f\n", clock_ns(CLOCK_THREAD_CPUTIME_ID) - began);
        check(cuCtxSynchronize());
    }
    return 0;
}
