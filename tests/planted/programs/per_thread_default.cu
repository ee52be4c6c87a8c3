// Code that nvcc compiles with --default-stream per-thread: stream 0 is the calling thread's own, which has the handle
// cudaStreamPerThread as well. A wait for it covers nothing of another thread's.
// variants: read, unread
#include "planted.h"

#include <thread>

constexpr int count = 4096;
constexpr size_t bytes = count * sizeof(int);

/* What the runtime's header makes of the calls in such code. */
extern "C" cudaError_t cudaMemcpyAsync_ptsz(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                                            cudaStream_t stream);
extern "C" cudaError_t cudaStreamSynchronize_ptsz(cudaStream_t stream);

void program()
{
    int *host = pinned_integers(count), *device = device_integers(count), *busy = device_integers(1);
    std::thread([&] {
        fill(device, count, 3, cudaStreamPerThread);
        check(cudaMemcpyAsync_ptsz(host, device, bytes, cudaMemcpyDeviceToHost, nullptr));
        WAIT(result, cudaStreamSynchronize_ptsz(cudaStreamPerThread)); // sync: read required, unread unnecessary
    }).join();
    fill(busy, 1, 1, cudaStreamPerThread);
    WAIT(others, cudaStreamSynchronize_ptsz(nullptr)); // sync: unnecessary
    if (variant("read"))
        expect("three", host[5], 3);
    settle();
}
