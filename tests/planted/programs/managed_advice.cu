// Managed memory that the program gives advice about, fetches to the CPU, or attaches to a stream. The CPU reads it, or
// only another piece that no kernel knows.
// variants: preferred, mostly_read, attached, fetched, other
#include "planted.h"

constexpr int count = 4096;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    void *memory = nullptr, *beside = nullptr;
    cudaStream_t stream = independent_stream();
    check(cudaMallocManaged(&memory, bytes, cudaMemAttachGlobal));
    check(cudaMallocManaged(&beside, bytes, cudaMemAttachGlobal));
    int *data = static_cast<int *>(memory), *apart = static_cast<int *>(beside);
    std::memset(data, 0, bytes);
    std::memset(apart, 0, bytes);
    cudaMemLocation host = {cudaMemLocationTypeHost, 0};
    if (variant("preferred"))
        check(cudaMemAdvise(data, bytes, cudaMemAdviseSetPreferredLocation, host));
    if (variant("mostly_read"))
        check(cudaMemAdvise(data, bytes, cudaMemAdviseSetReadMostly, host));
    if (variant("attached") || variant("other"))
        check(cudaStreamAttachMemAsync(stream, memory, 0, cudaMemAttachSingle));
    fill(data, count, 7, stream);
    if (variant("fetched"))
        check(cudaMemPrefetchAsync(data, bytes, host, 0, stream));
    // sync: preferred, mostly_read, attached, fetched required, other unnecessary
    WAIT(last, cudaStreamSynchronize(stream));
    expect("sum", sum(variant("other") ? apart : data, count), variant("other") ? 0 : 7 * count);
    settle();
}
