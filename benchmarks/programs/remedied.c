/* remedied OUTPUT CALLS BATCHES WAY: allocates and frees device memory over and over, 16 frames deep.
 *
 * WAY is `nothing` (frees the null pointer: the cheapest call whose stack can be planned), `plain` (cuMemAlloc and
 * cuMemFree), `ordered` (cuMemAllocAsync and cuMemFreeAsync) or `skip` (cuCtxSynchronize, nothing to wait for). Writes
 * to OUTPUT the mean nanoseconds of a call, or of a pair of calls, one line for each batch. Twelve functions of
 * different frames lie between main and the call, so that with main and the C library's three frames the call's stack
 * has 16. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clocks.h"
#include "driver.h"

enum { BLOCK = 256 * 1024 };

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
        double began = clock_ns(CLOCK_MONOTONIC);
        for (long call = 0; call < todo->calls; call++)
            failures += once(todo->way);
        todo->ns_per_call[batch] = (clock_ns(CLOCK_MONOTONIC) - began) / (double)todo->calls;
    }
    return failures;
}

#define INNERMOST_FRAME 12
#include "frames.h"

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
    open_driver();
    int failures = frame_1(&todo);
    for (long batch = 0; batch < todo.batches; batch++)
        fprintf(output, "%.3f\n", todo.ns_per_call[batch]);
    return fclose(output) != 0 || failures != 0;
}
