/* Releases its context after the destructors of a driver that it loaded late, as NVIDIA's runtime does.
 * `late_release DRIVER`: prints the result. */
#include <cuda.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static CUresult (*release)(CUdevice);

static void end_program(void)
{
    printf("released: %d\n", (int)release(0));
}

int main(int count, char **arguments)
{
    CUcontext context;
    if (count != 2 || atexit(end_program) != 0)
        return 2;
    void *driver = dlopen(arguments[1], RTLD_NOW);
    if (driver == NULL)
        return 2;
    CUresult (*initialize)(unsigned) = (CUresult (*)(unsigned))dlsym(driver, "cuInit");
    CUresult (*retain)(CUcontext *, CUdevice) =
        (CUresult (*)(CUcontext *, CUdevice))dlsym(driver, "cuDevicePrimaryCtxRetain");
    release = (CUresult (*)(CUdevice))dlsym(driver, "cuDevicePrimaryCtxRelease_v2");
    return initialize(0) == CUDA_SUCCESS && retain(&context, 0) == CUDA_SUCCESS ? 0 : 3;
}
