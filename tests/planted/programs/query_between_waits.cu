// A cache asks for an event now and then, and does nothing if it is not ready. Its second question succeeds because the
// program has waited in between; the program relies on its own wait, not on the answer.
// variants: cache, loop
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

static int freed = 0;

static __attribute__((noinline, noclone)) void look_after_cache(cudaEvent_t event)
{
    if (cudaEventQuery(event) == cudaSuccess)
        ++freed;
}

static __attribute__((noinline, noclone)) void step(cudaEvent_t event, volatile int *turn)
{
    look_after_cache(event);
    *turn = *turn + 1;
}

void program()
{
    cudaEvent_t event;
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    int *device = device_integers(count), *host = pinned_integers(count);
    for (int turn = 0; turn < (variant("loop") ? 3 : 1); ++turn) {
        fill(device, count, 7 + turn);
        DOWNLOAD_ASYNC(host, device, bytes);
        check(cudaEventRecord(event));
        for (volatile int times = 0; times < 2;) {
            step(event, &times);
            if (times == 1)
                WAIT(wait, cudaStreamSynchronize(nullptr)); // sync: required
        }
        expect("sum", sum(host, count), (7 + turn) * count);
    }
}
