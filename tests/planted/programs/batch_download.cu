// One call copies to two places; the CPU reads the second, or neither.
// variants: read, never
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    cudaStream_t stream = independent_stream();
    int *device = device_integers(2 * count);
    int *first = pinned_integers(count), *second = pinned_integers(count);
    void *destinations[] = {first, second};
    const void *sources[] = {device, device + count};
    size_t sizes[] = {bytes, bytes}, place = 0;
    cudaMemcpyAttributes attributes = {};
    attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
    fill(device, 2 * count, 7, stream);
    // transfer: needed or copy
    check(cudaMemcpyBatchAsync(destinations, sources, sizes, 2, &attributes, &place, 1, stream));
    WAIT(last, cudaStreamSynchronize(stream)); // sync: read required, never unnecessary
    if (variant("read"))
        expect("sum", sum(second, count), 7 * count);
}
