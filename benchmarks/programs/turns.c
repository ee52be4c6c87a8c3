/* turns TURNS BLOCKS: the same five driver calls, over and over, as a training or a simulation makes them.
 *
 * A turn uploads 256 bytes from the stack, launches a kernel, waits for the device, launches again, and downloads 4
 * bytes to the stack. BLOCKS of heap memory and one of 64 GiB stay allocated meanwhile, since a tool that follows host
 * memory looks up where each transfer's lies. Prints the seconds that the turns took. */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

static const char kernel[] = ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry step() { ret; }\n";

static void check(CUresult result)
{
    if (result != CUDA_SUCCESS) {
        fprintf(stderr, "turns: the driver answered %d\n", (int)result);
        exit(1);
    }
}

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Blocks of all sizes from 1 KiB to 64 KiB, and a huge one; none is touched. */
static void allocate(long blocks)
{
    static const size_t huge = (size_t)64 << 30;
    void *last = mmap(NULL, huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    for (long block = 0; block < blocks && last != MAP_FAILED && last != NULL; block++)
        last = malloc(1024 * (size_t)(1 + block % 64));
    if (last == MAP_FAILED || last == NULL) {
        perror("turns");
        exit(1);
    }
}

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
    CUdevice gpu;
    CUcontext context;
    CUmodule module;
    CUfunction step;
    CUdeviceptr device;
    check(cuInit(0));
    check(cuDeviceGet(&gpu, 0));
    check(cuDevicePrimaryCtxRetain(&context, gpu));
    check(cuCtxSetCurrent(context));
    check(cuModuleLoadData(&module, kernel));
    check(cuModuleGetFunction(&step, module, "step"));
    check(cuMemAlloc(&device, 256));
    allocate(atol(arguments[2]));
    const long turns = atol(arguments[1]);
    long sum = 0;
    const double began = now_s();
    for (long number = 0; number < turns; number++)
        sum += turn(step, device, (int)(number % 1000));
    printf("%.9f s, sum %ld\n", now_s() - began, sum);
    return 0;
}
