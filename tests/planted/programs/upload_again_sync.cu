// The same by the synchronous call, from pageable memory: the repeated one does not change the GPU's memory.
// variants: same, other
// like: upload_again
#include "planted.h"

constexpr int count = 16 * 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count);
    int *source = pageable_integers(count, 5);
    int *other = pageable_integers(count, 6);
    int *result = pinned_integers(count);
    UPLOAD(one, device, source, bytes); // sync: unnecessary; transfer: needed
    // sync: unnecessary; transfer: same no-op (of one), other needed
    UPLOAD(two, device, variant("same") ? source : other, bytes);
    add_slowly(device, device, count);
    DOWNLOAD_ASYNC(result, device, bytes);
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: required
    expect("sum", sum(result, count), (variant("same") ? 6 : 7) * count);
}
