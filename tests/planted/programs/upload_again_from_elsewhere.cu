// The same bytes come from another place of the host: sending them again changes nothing, but they may be other data.
// variants: same, other
#include "planted.h"

constexpr int count = 16 * 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count);
    int *source = pinned_integers(count, 5);
    int *copy = pageable_integers(count, variant("same") ? 5 : 6);
    int *result = pinned_integers(count);
    UPLOAD_ASYNC(device, source, bytes); // transfer: needed (first)
    UPLOAD_ASYNC(device, copy, bytes);   // transfer: same no-op by equal bytes (of first), other needed
    add_slowly(device, device, count);
    DOWNLOAD_ASYNC(result, device, bytes);
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: required
    expect("sum", sum(result, count), (variant("same") ? 6 : 7) * count);
}
