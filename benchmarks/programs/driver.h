/* What programs do that call the driver: they end at its first error, and begin with a context of the first GPU. */
#include <cuda.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static inline void check(CUresult result)
{
    if (result != CUDA_SUCCESS) {
        fprintf(stderr, "%s: the driver answered %d\n", program_invocation_short_name, (int)result);
        exit(1);
    }
}

static inline void open_driver(void)
{
    CUdevice gpu;
    CUcontext context;
    check(cuInit(0));
    check(cuDeviceGet(&gpu, 0));
    check(cuDevicePrimaryCtxRetain(&context, gpu));
    check(cuCtxSetCurrent(context));
}
