// A coroutine computes on a stack of 8 KiB, of which it uses little. What lies below that stack stays as it is.
#include <cstdio>
#include <cstring>

#include <cuda_runtime_api.h>
#include <time.h>
#include <ucontext.h>

constexpr size_t room = 8 << 10;
constexpr clock_t ticks = CLOCKS_PER_SEC / 10; // of the processor; there is a sample each 10 ms or more often

alignas(64) unsigned char below_and_stack[2 * room];
ucontext_t caller, coroutine;
volatile long turns = 0;

void compute()
{
    for (;;) {
        for (int i = 0; i < 1000 * 1000; ++i)
            turns = turns + 1;
        swapcontext(&coroutine, &caller);
    }
}

int main()
{
    cudaDeviceSynchronize();
    std::memset(below_and_stack, 0x5A, room);
    getcontext(&coroutine);
    coroutine.uc_stack.ss_sp = below_and_stack + room;
    coroutine.uc_stack.ss_size = room;
    makecontext(&coroutine, compute, 0);
    const clock_t start = clock();
    while (clock() - start < ticks)
        swapcontext(&caller, &coroutine);
    cudaDeviceSynchronize();
    size_t intact = 0;
    while (intact < room && below_and_stack[room - 1 - intact] == 0x5A)
        ++intact;
    std::printf("below the stack: %zu bytes\n", intact);
}
