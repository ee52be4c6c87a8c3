// Three buffers in turn: kernels fill them on one stream, another one downloads them, and events keep the order both
// ways. The CPU waits for a download two turns later, and uses it or not.
// variants: digests, skips
#include "planted.h"

constexpr int count = 4096, frames = 8, buffers = 3;

void program()
{
    cudaStream_t work = independent_stream(), down = independent_stream();
    int *device[buffers], *host[buffers];
    cudaEvent_t made[buffers], got[buffers];
    for (int i = 0; i < buffers; ++i) {
        device[i] = device_integers(count);
        host[i] = pinned_integers(count);
        check(cudaEventCreateWithFlags(&made[i], cudaEventDisableTiming));
        check(cudaEventCreateWithFlags(&got[i], cudaEventDisableTiming));
    }
    long long total = 0, expected = 0;
    for (int frame = 0; frame < frames + 2; ++frame) {
        if (frame >= 2) {
            const int of = (frame - 2) % buffers;
            WAIT(frame, cudaEventSynchronize(got[of])); // sync: digests required, skips unnecessary
            total += variant("digests") ? sum(host[of], count) : 0;
            expected += variant("digests") ? (frame - 2LL) * count : 0;
        }
        if (frame < frames) {
            const int of = frame % buffers;
            if (frame >= buffers)
                check(cudaStreamWaitEvent(work, got[of], 0));
            fill(device[of], count, frame, work);
            check(cudaEventRecord(made[of], work));
            check(cudaStreamWaitEvent(down, made[of], 0));
            DOWNLOAD_ASYNC(host[of], device[of], count * sizeof(int), down);
            check(cudaEventRecord(got[of], down));
        }
    }
    expect("total", total, expected);
    settle();
}
