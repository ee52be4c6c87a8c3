/* pieces NUMBER DEPTH: the CPU does the same work NUMBER times, some 20 ms each, DEPTH functions deep, and calls the
 * driver after each.
 *
 * Prints the processor time of each, in nanoseconds. */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { STEPS = 15000000 };

static volatile unsigned seen;

static void check(CUresult result)
{
    if (result != CUDA_SUCCESS) {
        fprintf(stderr, "pieces: the driver answered %d\n", (int)result);
        exit(1);
    }
}

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

static long long processor_time(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

int main(int count, char **arguments)
{
    if (count != 3 || atol(arguments[1]) < 1 || atol(arguments[2]) < 1) {
        fprintf(stderr, "usage: pieces NUMBER DEPTH\n");
        return 2;
    }
    CUdevice gpu;
    CUcontext context;
    check(cuInit(0));
    check(cuDeviceGet(&gpu, 0));
    check(cuDevicePrimaryCtxRetain(&context, gpu));
    check(cuCtxSetCurrent(context));
    for (long piece = 0; piece < atol(arguments[1]); piece++) {
        const long long began = processor_time();
        seen = work((unsigned)piece, atol(arguments[2]));
        printf("%lld\n", processor_time() - began);
        check(cuCtxSynchronize());
    }
    return 0;
}
