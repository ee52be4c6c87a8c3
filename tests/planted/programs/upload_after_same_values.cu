// A kernel writes the destination between two uploads, but exactly the values that are there: it holds them still.
// variants: same, changed
#include "planted.h"

constexpr int count = 16 * 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count);
    int *source = pinned_integers(count, 5);
    int *result = pinned_integers(count);
    UPLOAD_ASYNC(device, source, bytes); // transfer: needed (first)
    fill(device, count, variant("same") ? 5 : 4);
    UPLOAD_ASYNC(device, source, bytes); // transfer: same no-op (of first), changed repeat (of first)
    add_slowly(device, device, count);
    DOWNLOAD_ASYNC(result, device, bytes);
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: required
    expect("sum", sum(result, count), 6 * count);
}
