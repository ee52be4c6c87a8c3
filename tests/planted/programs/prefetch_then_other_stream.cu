// Managed memory is brought to the device on one stream, and a kernel on another stream uses it after a wait for that:
// where memory lies changes no value. Or a kernel on the first stream fills it, too.
// variants: brought, filled
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    void *memory = nullptr;
    cudaStream_t first = independent_stream();
    cudaStream_t second = independent_stream();
    int *added = device_integers(count);
    int *host = pinned_integers(count);
    check(cudaMallocManaged(&memory, bytes, cudaMemAttachGlobal));
    int *both = static_cast<int *>(memory);
    for (int index = 0; index < count; ++index)
        both[index] = 3;
    cudaMemLocation device = {};
    device.type = cudaMemLocationTypeDevice;
    if (variant("filled"))
        fill(both, count, 7, first);
    check(cudaMemPrefetchAsync(memory, bytes, device, 0, first));
    WAIT(brought, cudaStreamSynchronize(first)); // sync: brought unnecessary, filled required
    add_slowly(added, both, count, second);
    DOWNLOAD_ASYNC(host, added, bytes, second);
    WAIT(last, cudaStreamSynchronize(second)); // sync: required
    expect("sum", sum(host, count), (variant("filled") ? 8 : 4) * count);
}
