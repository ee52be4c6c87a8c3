/* descent STEPS: a search that asks the GPU after each step whether to go on.
 *
 * A step launches two kernels, uploads a factor from the stack meanwhile, and downloads 4 bytes that decide; the CPU
 * then adapts the factor. Prints the last factor. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "driver.h"

static const char kernels[] = ".version 8.0\n.target sm_75\n.address_size 64\n"
                              ".visible .entry gradient() { ret; }\n.visible .entry advance() { ret; }\n";

__attribute__((noinline)) static double adapt(double factor)
{
    for (int round = 0; round < 20000; round++)
        factor = fabs(factor * 1.0000001 - 1e-9);
    return factor;
}

static void launch(CUfunction kernel)
{
    check(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
}

int main(int count, char **arguments)
{
    if (count != 2 || atol(arguments[1]) < 1) {
        fprintf(stderr, "usage: descent STEPS\n");
        return 2;
    }
    CUmodule module;
    CUfunction gradient, advance;
    CUdeviceptr device;
    open_driver();
    check(cuModuleLoadData(&module, kernels));
    check(cuModuleGetFunction(&gradient, module, "gradient"));
    check(cuModuleGetFunction(&advance, module, "advance"));
    check(cuMemAlloc(&device, 64));
    double factor = 1;
    int stop = 0;
    const long steps = atol(arguments[1]);
    for (long step = 0; step < steps; step++) {
        launch(gradient);
        check(cuMemcpyHtoD(device, &factor, sizeof factor));
        launch(advance);
        check(cuMemcpyDtoH(&stop, device + 16, sizeof stop));
        factor = adapt(factor);
    }
    printf("factor %g, %d\n", factor, stop);
    return 0;
}
