/* calls OUTPUT CALLS BATCHES PAUSE BLOCKS: makes one cheap driver call over and over, 16 frames deep.
 *
 * cuEventQuery of an event that was never recorded: a real driver call that neither enqueues nor waits. With BLOCKS of
 * heap memory, and a huge one, the call is an upload of no bytes from the stack instead: it does nothing either, but a
 * tool that follows host memory has to look up where it comes from. Writes to OUTPUT the mean nanoseconds of a call,
 * one line for each batch. With a PAUSE of 0 the calls follow each other and the loop is timed. With another the thread
 * sleeps that many microseconds before each call, and each is timed alone: as in a program that waits for its GPU,
 * caches are cold then. Twelve functions of different frames lie between main and the call, so that with main and the C
 * library's three frames the call's stack has 16. */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

static void check(CUresult result)
{
    if (result != CUDA_SUCCESS) {
        fprintf(stderr, "calls: the driver answered %d\n", (int)result);
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
        double began = now_ns();
        for (long call = 0; call < todo->calls; call++) {
            if (todo->pause.tv_nsec != 0) {
                nanosleep(&todo->pause, NULL);
                began = now_ns();
            }
            CUresult result =
                todo->device == 0 ? cuEventQuery(todo->event) : cuMemcpyHtoDAsync(todo->device, &source, 0, NULL);
            failures += result != CUDA_SUCCESS;
            if (todo->pause.tv_nsec != 0)
                spent += now_ns() - began;
        }
        if (todo->pause.tv_nsec == 0)
            spent = now_ns() - began;
        todo->ns_per_call[batch] = spent / (double)todo->calls;
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

/* Memory of the heap that stays allocated, in blocks of all sizes from 1 KiB to 64 KiB, none of which is touched. */
static void allocate(long blocks)
{
    static const size_t huge = (size_t)64 << 30;
    void *last = mmap(NULL, huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    for (long block = 0; block < blocks && last != MAP_FAILED && last != NULL; block++)
        last = malloc(1024 * (size_t)(1 + block % 64));
    if (last == MAP_FAILED || last == NULL) {
        perror("calls");
        exit(1);
    }
}

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
    CUdevice device;
    CUcontext context;
    check(cuInit(0));
    check(cuDeviceGet(&device, 0));
    check(cuDevicePrimaryCtxRetain(&context, device));
    check(cuCtxSetCurrent(context));
    check(cuEventCreate(&todo.event, CU_EVENT_DEFAULT));
    if (atol(arguments[5]) > 0) {
        check(cuMemAlloc(&todo.device, 4));
        allocate(atol(arguments[5]));
    }
    int failures = frame_1(&todo);
    for (long batch = 0; batch < todo.batches; batch++)
        fprintf(output, "%.3f\n", todo.ns_per_call[batch]);
    check(cuEventDestroy(todo.event));
    return fclose(output) != 0 || failures != 0;
}
