/* bands ROUNDS: two streams take turns. In each round the CPU prepares a buffer, which is uploaded while the GPU
 * filters the one of the round before; the results of that are then downloaded and examined.
 *
 * Prints a sum of what was examined. */
#include <stdio.h>
#include <stdlib.h>

#include "driver.h"

enum { SIZE = 1 << 16, WORDS = SIZE / sizeof(int), PASSES = 24 };

static const char kernel[] = ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry filter() { ret; }\n";

__attribute__((noinline)) static void prepare(int *words, unsigned round)
{
    for (unsigned pass = 0; pass < PASSES; pass++)
        for (unsigned word = 0; word < WORDS; word++)
            words[word] = (int)(((unsigned)words[word] ^ round) * 2654435761u + pass);
}

__attribute__((noinline)) static unsigned examine(const int *words)
{
    unsigned sum = 0;
    for (unsigned pass = 0; pass < PASSES / 4; pass++)
        for (unsigned word = 0; word < WORDS; word++)
            sum = sum * 31 + (unsigned)words[word];
    return sum;
}

int main(int count, char **arguments)
{
    if (count != 2 || atol(arguments[1]) < 1) {
        fprintf(stderr, "usage: bands ROUNDS\n");
        return 2;
    }
    CUmodule module;
    CUfunction filter;
    CUstream streams[2];
    CUdeviceptr device[2];
    int *input[2], *output;
    open_driver();
    check(cuModuleLoadData(&module, kernel));
    check(cuModuleGetFunction(&filter, module, "filter"));
    check(cuMemHostAlloc((void **)&output, SIZE, 0));
    for (int turn = 0; turn < 2; turn++) {
        check(cuStreamCreate(&streams[turn], CU_STREAM_NON_BLOCKING));
        check(cuMemAlloc(&device[turn], SIZE));
        check(cuMemHostAlloc((void **)&input[turn], SIZE, 0));
    }
    unsigned sum = 0;
    const long rounds = atol(arguments[1]);
    for (long round = 0; round < rounds; round++) {
        const int turn = (int)(round % 2), before = 1 - turn;
        prepare(input[turn], (unsigned)round);
        check(cuMemcpyHtoDAsync(device[turn], input[turn], SIZE, streams[turn]));
        check(cuLaunchKernel(filter, 1, 1, 1, 1, 1, 1, 0, streams[turn], NULL, NULL));
        if (round == 0)
            continue;
        check(cuMemcpyDtoHAsync(output, device[before], SIZE, streams[before]));
        check(cuStreamSynchronize(streams[before]));
        sum += examine(output);
    }
    check(cuCtxSynchronize());
    printf("sum %u\n", sum);
    return 0;
}
