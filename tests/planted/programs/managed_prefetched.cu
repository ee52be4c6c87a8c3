// Managed memory that a kernel writes is brought to the host in stream order; the CPU reads it after the wait, writes
// it then, or leaves it.
// variants: read, written, never
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    void *memory = nullptr;
    cudaStream_t stream = independent_stream();
    check(cudaMallocManaged(&memory, bytes, cudaMemAttachGlobal));
    int *both = static_cast<int *>(memory);
    fill(both, count, 7, stream);
    cudaMemLocation host = {};
    host.type = cudaMemLocationTypeHost;
    check(cudaMemPrefetchAsync(memory, bytes, host, 0, stream));
    WAIT(last, cudaStreamSynchronize(stream)); // sync: read, written required, never unnecessary
    if (variant("read"))
        expect("sum", sum(both, count), 7 * count);
    if (variant("written")) {
        both[1] = 5;
        settle();
        expect("second", both[1], 5);
    }
}
