// Streams of other priorities are apart from each other, as all are. A wait for another one covers nothing, but one for
// the default stream covers those that it blocks.
// variants: right, wrong, default_stream, blocking
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int least = 0, greatest = 0;
    cudaStream_t urgent, patient;
    check(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    check(cudaStreamCreateWithPriority(&urgent, variant("blocking") ? cudaStreamDefault : cudaStreamNonBlocking,
                                       greatest));
    check(cudaStreamCreateWithPriority(&patient, cudaStreamNonBlocking, least));
    int *device = device_integers(count), *other = device_integers(count), *host = pinned_integers(count);
    fill(other, count, 3, patient);
    fill(device, count, 7, urgent);
    DOWNLOAD_ASYNC(host, device, bytes, urgent);
    WAIT(of_patient, cudaStreamSynchronize(patient)); // sync: unnecessary
    // sync: blocking conditionally unnecessary (keep of_urgent), right, wrong, default_stream unnecessary
    WAIT(of_default, cudaStreamSynchronize(nullptr));
    // sync: right, default_stream, blocking required, wrong unnecessary
    WAIT(of_urgent, cudaStreamSynchronize(urgent));
    if (!variant("wrong"))
        expect("sum", sum(host, count), 7 * count);
    settle();
}
