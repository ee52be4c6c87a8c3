// A kernel overwrites the destination between two uploads of the same bytes; or it only reads it.
// variants: overwritten, read
#include "planted.h"

constexpr int count = 16 * 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count);
    int *other = device_integers(count);
    int *source = pinned_integers(count, 5);
    int *result = pinned_integers(count);
    UPLOAD_ASYNC(device, source, bytes); // transfer: needed (first)
    add_slowly(variant("overwritten") ? device : other, device, count);
    UPLOAD_ASYNC(device, source, bytes); // transfer: overwritten repeat (of first), read no-op (of first)
    add_slowly(device, device, count);
    DOWNLOAD_ASYNC(result, device, bytes);
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: required
    expect("sum", sum(result, count), 6 * count);
}
