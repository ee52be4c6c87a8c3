// Memory of a pool goes from stream to stream, or back to the system. Only where another owner may come before its last
// use is the wait needed; and perhaps so that trimming finds memory that is free.
// variants: trimmed, handed_on, own_pool
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    cudaStream_t one = independent_stream(), other = independent_stream();
    int *host = pinned_integers(count), *result = device_integers(count);
    int *busy = device_integers(3 * count);
    void *memory = nullptr, *next = nullptr;
    cudaMemPool_t pool;
    check(cudaDeviceGetDefaultMemPool(&pool, 0));
    check(cudaMallocAsync(&memory, bytes, one));
    fill(static_cast<int *>(memory), count, 7, one);
    if (variant("handed_on"))
        fill(busy, count, 1, one);
    add_slowly(result, static_cast<int *>(memory), count, one);
    if (variant("trimmed")) {
        check(cudaFreeAsync(memory, one));
        // sync: trimmed required (undecidable), handed_on, own_pool absent
        WAIT(before_trim, cudaStreamSynchronize(one));
        check(cudaMemPoolTrimTo(pool, 0));
    } else if (variant("handed_on")) {
        // sync: handed_on required, trimmed, own_pool absent
        WAIT(before_other, cudaStreamSynchronize(one));
        fill(busy + count, count, 1, other);
        add_slowly(busy + 2 * count, busy + count, count, other);
        check(cudaMemsetAsync(memory, 0, bytes, other));
        check(cudaFreeAsync(memory, other));
    } else {
        check(cudaFreeAsync(memory, one));
        check(cudaMallocAsync(&next, bytes, one));
        fill(static_cast<int *>(next), count, 9, one);
        // sync: own_pool unnecessary or conditionally unnecessary, trimmed, handed_on absent
        WAIT(of_own, cudaStreamSynchronize(one));
    }
    DOWNLOAD_ASYNC(host, result, bytes, one);
    WAIT(last, cudaStreamSynchronize(one)); // sync: required
    expect("sum", sum(host, count), 8 * count);
}
