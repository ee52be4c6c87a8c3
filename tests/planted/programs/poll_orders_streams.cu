// Polling orders two streams through the CPU as a wait does; or nothing is polled. A query that succeeds at once
// may be one that the program would not repeat, so that the wait before it counts as needed.
// variants: polled, waited
#include "planted.h"

#include <thread>

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    cudaStream_t first = independent_stream();
    cudaStream_t second = independent_stream();
    int *made = device_integers(count);
    int *used = device_integers(count);
    int *host = pinned_integers(count);
    fill(made, count, 7, first);
    // sync: polled required (undecidable), waited required
    WAIT(between, cudaStreamSynchronize(first));
    if (variant("polled"))
        while (cudaStreamQuery(first) == cudaErrorNotReady)
            std::this_thread::yield();
    add_slowly(used, made, count, second);
    DOWNLOAD_ASYNC(host, used, bytes, second);
    WAIT(last, cudaStreamSynchronize(second)); // sync: required
    expect("sum", sum(host, count), 8 * count);
}
