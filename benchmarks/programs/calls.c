/* calls OUTPUT CALLS BATCHES PAUSE BLOCKS: makes one cheap driver call over and over, 16 frames deep.
 *
 * cuEventQuery of an event that was never recorded: a real driver call that neither enqueues nor waits. With BLOCKS of
 * heap memory, and a huge one, the call is an upload of no bytes from the stack instead: it does nothing either, but a
 * tool that follows host memory has to look up where it comes from. Writes to OUTPUT the mean nanoseconds of a call,
 * one line for each batch. With a PAUSE of 0 the calls follow each other and the loop is timed. With another the thread
 * sleeps that many microseconds before each call, and each is timed alone: as in a program that waits for its GPU,
 * caches are cold then. Twelve functions of different frames lie between main and the call, so that with main and the C
 * library's three frames the call's stack has 16. */
#include <stdio.h>
#include <stdlib.h>

#include "clocks.h"
#include "driver.h"
#include "host_blocks.h"

typedef struct {
    CUevent event;
    CUdeviceptr device; /* where to upload to; 0 if the event is queried */
    long calls;
    long batches;
    struct timespec pause;
    double *ns_per_call;
} work;

/* The innermost function of the program: it makes the calls. */
__attribute__((noinline)) static int frame_12(const work *todo)
{
    int failures = 0;
    char source = 0;
    for (long batch = 0; batch < todo->batches; batch++) {
        double spent = 0;
        double began = clock_ns(CLOCK_MONOTONIC);
        for (long call = 0; call < todo->calls; call++) {
            if (todo->pause.tv_nsec != 0) {
                nanosleep(&todo->pause, NULL);
                began = clock_ns(CLOCK_MONOTONIC);
            }
            CUresult result =
                todo->device == 0 ? cuEventQuery(todo->event) : cuMemcpyHtoDAsync(todo->device, &source, 0, NULL);
            failures += result != CUDA_SUCCESS;
            if (todo->pause.tv_nsec != 0)
                spent += clock_ns(CLOCK_MONOTONIC) - began;
        }
        if (todo->pause.tv_nsec == 0)
            spent = clock_ns(CLOCK_MONOTONIC) - began;
        todo->ns_per_call[batch] = spent / (double)todo->calls;
    }
    return failures;
}

#define INNERMOST_FRAME 12
#include "frames.h"

int main(int count, char **arguments)
{
    if (count != 6 || atol(arguments[2]) < 1 || atol(arguments[3]) < 1) {
        fprintf(stderr, "usage: calls OUTPUT CALLS BATCHES PAUSE BLOCKS\n");
        return 2;
    }
    work todo = {.calls = atol(arguments[2]), .batches = atol(arguments[3])};
    todo.pause.tv_nsec = 1000 * atol(arguments[4]);
    todo.ns_per_call = calloc((size_t)todo.batches, sizeof *todo.ns_per_call);
    FILE *output = fopen(arguments[1], "w");
    if (output == NULL || todo.ns_per_call == NULL) {
        perror("calls");
        return 1;
    }
    open_driver();
    check(cuEventCreate(&todo.event, CU_EVENT_DEFAULT));
    if (atol(arguments[5]) > 0) {
        check(cuMemAlloc(&todo.device, 4));
        allocate_host_blocks(atol(arguments[5]));
    }
    int failures = frame_1(&todo);
    for (long batch = 0; batch < todo.batches; batch++)
        fprintf(output, "%.3f\n", todo.ns_per_call[batch]);
    check(cuEventDestroy(todo.event));
    return fclose(output) != 0 || failures != 0;
}
