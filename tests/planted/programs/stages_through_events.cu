// An image pipeline of three stages on three streams with events, and needless device waits between the stages; the
// last stage's image is used row by row. Or a missing event makes one of the waits needed.
// variants: events, missing
#include "planted.h"
#include <vector>
constexpr int count = 4096;
void program()
{
    cudaStream_t streams[3];
    cudaEvent_t done[3];
    int *images[3], *host = pinned_integers(count);
    for (int stage = 0; stage < 3; ++stage) {
        streams[stage] = independent_stream();
        check(cudaEventCreateWithFlags(&done[stage], cudaEventDisableTiming));
        images[stage] = device_integers(count);
    }
    for (int image = 0; image < 3; ++image) {
        fill(images[0], count, image, streams[0]);
        check(cudaEventRecord(done[0], streams[0]));
        if (variant("events"))
            check(cudaStreamWaitEvent(streams[1], done[0], 0));
        WAIT(first, cudaStreamSynchronize(streams[0])); // sync: events unnecessary, missing required
        add_slowly(images[1], images[0], count, streams[1]);
        check(cudaEventRecord(done[1], streams[1]));
        check(cudaStreamWaitEvent(streams[2], done[1], 0));
        WAIT(second, cudaStreamSynchronize(streams[1])); // sync: unnecessary or conditionally unnecessary
        add_slowly(images[2], images[1], count, streams[2]);
        DOWNLOAD_ASYNC(host, images[2], count * sizeof(int), streams[2]);
        WAIT(third, cudaStreamSynchronize(streams[2])); // sync: required
        expect("pixel", host[image * 100], image + 2);
    }
}
