// The same batch of copies goes to the device twice, behind a slow kernel; in between nothing changes, or a source
// does.
// variants: same, changed
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    cudaStream_t stream = independent_stream();
    int *device = device_integers(2 * count), *slow = device_integers(count);
    int *first = pinned_integers(count, 3), *second = pinned_integers(count, 4), *result = pageable_integers(count);
    void *destinations[] = {device, device + count};
    const void *sources[] = {first, second};
    size_t sizes[] = {bytes, bytes}, place = 0;
    cudaMemcpyAttributes attributes = {};
    attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
    fill(slow, count, 1, stream);
    // transfer: needed (once)
    check(cudaMemcpyBatchAsync(destinations, sources, sizes, 2, &attributes, &place, 1, stream));
    // sync: same unnecessary or conditionally unnecessary, changed required (undecidable)
    WAIT(sent, cudaStreamSynchronize(stream));
    if (variant("changed"))
        second[0] = 5;
    fill(slow, count, 2, stream);
    // transfer: same no-op (of once), changed needed
    check(cudaMemcpyBatchAsync(destinations, sources, sizes, 2, &attributes, &place, 1, stream));
    WAIT(again, cudaStreamSynchronize(stream));    // sync: required
    DOWNLOAD(copy, result, device + count, bytes); // sync: required
    expect("sum", sum(result, count), 4 * count + variant("changed"));
}
