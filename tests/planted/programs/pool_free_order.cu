// Memory of a pool goes back in the order of one stream while another one's kernel uses it: only the wait orders the
// two, and the next owner overwrites it. Or it goes back in the order of the stream that uses it. Or its first use
// comes after nothing but the allocation, by a wait.
// variants: other, same, event, fresh
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    cudaStream_t uses = independent_stream(), owns = independent_stream();
    int *result = device_integers(count), *busy = device_integers(count), *host = pinned_integers(count);
    void *memory = nullptr, *next = nullptr;
    cudaEvent_t used;
    check(cudaEventCreateWithFlags(&used, cudaEventDisableTiming));
    check(cudaMallocAsync(&memory, bytes, owns));
    if (variant("fresh"))
        fill(device_integers(count), count, 1, owns);
    else
        check(cudaMemsetAsync(memory, 0, bytes, owns));
    check(cudaStreamSynchronize(owns)); // sync: required
    if (variant("fresh"))
        check(cudaMemsetAsync(memory, 0, bytes, uses));
    fill(busy, count, 1, uses);
    add_slowly(result, static_cast<int *>(memory), count, uses);
    check(cudaEventRecord(used, uses));
    if (variant("event"))
        check(cudaStreamWaitEvent(owns, used, 0));
    WAIT(done, cudaStreamSynchronize(uses)); // sync: other, fresh required, same, event unnecessary
    cudaStream_t frees = variant("same") ? uses : owns;
    check(cudaFreeAsync(memory, frees));
    check(cudaMallocAsync(&next, bytes, frees));
    check(cudaMemsetAsync(next, 9, bytes, frees));
    DOWNLOAD_ASYNC(host, result, bytes, uses);
    WAIT(last, cudaStreamSynchronize(uses)); // sync: required
    expect("sum", sum(host, count), count);
}
