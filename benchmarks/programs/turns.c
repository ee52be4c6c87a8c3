/* turns TURNS BLOCKS: the same five driver calls, over and over, as a training or a simulation makes them.
 *
 * A turn uploads 256 bytes from the stack, launches a kernel, waits for the device, launches again, and downloads 4
 * bytes to the stack. BLOCKS of heap memory and one of 64 GiB stay allocated meanwhile, since a tool that follows host
 * memory looks up where each transfer's lies. Prints the seconds that the turns took. */
#include <stdio.h>
#include <stdlib.h>

#include "clocks.h"
#include "driver.h"
#include "host_blocks.h"

static const char kernel[] = ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry step() { ret; }\n";

static int turn(CUfunction step, CUdeviceptr device, int number)
{
    int source[64] = {number}, result = 0;
    check(cuMemcpyHtoD(device, source, sizeof source));
    check(cuLaunchKernel(step, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    check(cuCtxSynchronize());
    check(cuLaunchKernel(step, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    check(cuMemcpyDtoH(&result, device, sizeof result));
    return result;
}

int main(int count, char **arguments)
{
    if (count != 3 || atol(arguments[1]) < 1 || atol(arguments[2]) < 0) {
        fprintf(stderr, "usage: turns TURNS BLOCKS\n");
        return 2;
    }
    CUmodule module;
    CUfunction step;
    CUdeviceptr device;
    open_driver();
    check(cuModuleLoadData(&module, kernel));
    check(cuModuleGetFunction(&step, module, "step"));
    check(cuMemAlloc(&device, 256));
    allocate_host_blocks(atol(arguments[2]));
    const long turns = atol(arguments[1]);
    long sum = 0;
    const double began = clock_ns(CLOCK_MONOTONIC);
    for (long number = 0; number < turns; number++)
        sum += turn(step, device, (int)(number % 1000));
    printf("%.9f s, sum %ld\n", 1e-9 * (clock_ns(CLOCK_MONOTONIC) - began), sum);
    return 0;
}
