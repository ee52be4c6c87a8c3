// Only what is between the two calls of `edge` is measured. Waits there may be needed for what is outside: a download
// from before, a first use that comes after.
// variants: context, stream, default_stream
#include "planted.h"

constexpr int count = 16 * 1024;
constexpr size_t bytes = count * sizeof(int);

// Creating an event is no call that counts, so the test finds the window by it.
static void edge()
{
    cudaEvent_t event;
    check(cudaEventCreate(&event));
}

#define SYNCHRONIZE() (variant("context") ? cudaDeviceSynchronize() : cudaStreamSynchronize(stream))

void program()
{
    cudaStream_t stream = variant("stream") ? independent_stream() : nullptr;
    int *device = device_integers(count), *constant = device_integers(count);
    int *before = pinned_integers(count), *inside = pinned_integers(count), *after = pinned_integers(count);
    int *source = pinned_integers(count, 5);
    fill(device, count, 7, stream);
    UPLOAD_ASYNC(constant, source, bytes, stream);
    DOWNLOAD_ASYNC(before, device, bytes, stream);
    edge();
    WAIT(first, SYNCHRONIZE()); // sync: not judged
    expect("from before", sum(before, count), 7 * count);
    UPLOAD_ASYNC(constant, source, bytes, stream); // transfer: not judged
    fill(device, count, 8, stream);
    WAIT(useless, SYNCHRONIZE()); // sync: unnecessary or conditionally unnecessary
    fill(device, count, 9, stream);
    DOWNLOAD_ASYNC(inside, device, bytes, stream); // transfer: not judged
    WAIT(used, SYNCHRONIZE());                     // sync: required
    expect("inside", sum(inside, count), 9 * count);
    UPLOAD_ASYNC(constant, source, bytes, stream); // transfer: no-op
    fill(device, count, 10, stream);
    WAIT(again, SYNCHRONIZE()); // sync: unnecessary or conditionally unnecessary
    fill(device, count, 11, stream);
    DOWNLOAD_ASYNC(after, device, bytes, stream); // transfer: not judged
    WAIT(last, SYNCHRONIZE());                    // sync: not judged
    edge();
    fill(device, count, 12, stream); // the window ends with the next call that counts
    expect("after", sum(after, count), 11 * count);
    check(SYNCHRONIZE());
}
