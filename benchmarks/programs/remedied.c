/* remedied OUTPUT CALLS BATCHES WAY: allocates and frees device memory over and over, 16 frames deep.
 *
 * WAY is `nothing` (frees the null pointer: the cheapest call whose stack can be planned), `plain` (cuMemAlloc and
 * cuMemFree), `ordered` (cuMemAllocAsync and cuMemFreeAsync) or `skip` (cuCtxSynchronize, nothing to wait for). Writes
 * to OUTPUT the mean nanoseconds of a call, or of a pair of calls, one line for each batch. Twelve functions of
 * different frames lie between main and the call, so that with main and the C library's three frames the call's stack
 * has 16. */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BLOCK = 256 * 1024 };

static void check(CUresult result)
{
    if (result != CUDA_SUCCESS) {
        fprintf(stderr, "remedied: the driver answered %d\n", (int)result);
        exit(1);
    }
}

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

typedef struct {
    long calls;
    long batches;
    const char *way;
    double *ns_per_call;
} work;

static int once(const char *way)
{
    CUdeviceptr block;
    if (way[0] == 'n')
        return cuMemFree(0) != CUDA_SUCCESS;
    if (way[0] == 's')
        return cuCtxSynchronize() != CUDA_SUCCESS;
    if (way[0] == 'p')
        return cuMemAlloc(&block, BLOCK) != CUDA_SUCCESS || cuMemFree(block) != CUDA_SUCCESS;
    return cuMemAllocAsync(&block, BLOCK, NULL) != CUDA_SUCCESS || cuMemFreeAsync(block, NULL) != CUDA_SUCCESS;
}

/* The innermost function of the program: it makes the calls. */
__attribute__((noinline, flatten)) static int frame_12(const work *todo)
{
    int failures = 0;
    for (long batch = 0; batch < todo->batches; batch++) {
        double began = now_ns();
        for (long call = 0; call < todo->calls; call++)
            failures += once(todo->way);
        todo->ns_per_call[batch] = (now_ns() - began) / (double)todo->calls;
    }
    return failures;
}

/* A frame of its own size around the next one; the write after the call keeps it from becoming a jump. */
#define FRAME(number, next)                                                                                            \
    __attribute__((noinline)) static int frame_##number(const work *todo)                                              \
    {                                                                                                                  \
        volatile int room[8 * (number)];                                                                               \
        room[0] = frame_##next(todo);                                                                                  \
        return room[0];                                                                                                \
    }
FRAME(11, 12)
FRAME(10, 11)
FRAME(9, 10)
FRAME(8, 9)
FRAME(7, 8)
FRAME(6, 7)
FRAME(5, 6)
FRAME(4, 5)
FRAME(3, 4)
FRAME(2, 3)
FRAME(1, 2)

int main(int count, char **arguments)
{
    if (count != 5 || atol(arguments[2]) < 1 || atol(arguments[3]) < 1) {
        fprintf(stderr, "usage: remedied OUTPUT CALLS BATCHES nothing|plain|ordered|skip\n");
        return 2;
    }
    work todo = {.calls = atol(arguments[2]), .batches = atol(arguments[3]), .way = arguments[4]};
    todo.ns_per_call = calloc((size_t)todo.batches, sizeof *todo.ns_per_call);
    FILE *output = fopen(arguments[1], "w");
    if (output == NULL || todo.ns_per_call == NULL) {
        perror("remedied");
        return 1;
    }
    CUdevice device;
    CUcontext context;
    check(cuInit(0));
    check(cuDeviceGet(&device, 0));
    check(cuDevicePrimaryCtxRetain(&context, device));
    check(cuCtxSetCurrent(context));
    int failures = frame_1(&todo);
    for (long batch = 0; batch < todo.batches; batch++)
        fprintf(output, "%.3f\n", todo.ns_per_call[batch]);
    return fclose(output) != 0 || failures != 0;
}
