// A thread records an event after its work; another one waits for the event, which it gets behind a semaphore, and
// reads. That the first one waits itself helps nobody; or it records before the download, and then its own wait counts.
// variants: after, before
#include "planted.h"

#include <semaphore.h>
#include <thread>

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    cudaStream_t stream = independent_stream();
    int *device = device_integers(count), *host = pinned_integers(count);
    cudaEvent_t event;
    sem_t recorded;
    sem_init(&recorded, 0, 0);
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    std::thread maker([&] {
        fill(device, count, 7, stream);
        if (variant("before"))
            check(cudaEventRecord(event, stream));
        DOWNLOAD_ASYNC(host, device, bytes, stream);
        if (variant("after"))
            check(cudaEventRecord(event, stream));
        else
            WAIT(own, cudaStreamSynchronize(stream)); // sync: after absent, before required
        sem_post(&recorded);
        if (variant("after"))
            // sync: after unnecessary or conditionally unnecessary, before absent
            WAIT(late, cudaStreamSynchronize(stream));
    });
    sem_wait(&recorded);
    WAIT(told, cudaEventSynchronize(event)); // sync: after required, before unnecessary
    expect("sum", sum(host, count), 7 * count);
    maker.join();
}
