// memset overwrites the source of an upload in flight, or other memory.
// variants: source, other
#include "planted.h"

constexpr int count = 4096;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *busy = device_integers(1);
    int *device = device_integers(count);
    int *source = pinned_integers(count, 5);
    int *other = pageable_integers(count, 5);
    int *result = pageable_integers(count);
    fill(busy, 1, 0);
    UPLOAD_ASYNC(device, source, bytes);
    WAIT(before, cudaStreamSynchronize(nullptr)); // sync: source required, other unnecessary
    std::memset(variant("source") ? source : other, 0, bytes);
    add_slowly(device, device, count);
    DOWNLOAD(copy, result, device, bytes); // sync: required
    expect("sum", sum(result, count), 6 * count);
}
