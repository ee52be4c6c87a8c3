// An upload reads from a page on which a download arrives: reading the source is harmless, reading the result is not.
// variants: source, result
#include "planted.h"

constexpr int count = 64;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(2 * count);
    int *page = pinned_integers(2 * count, 5);
    fill(device, count, 7);
    UPLOAD_ASYNC(device + count, page, bytes);
    DOWNLOAD_ASYNC(page + count, device, bytes);
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: source unnecessary, result required
    expect("source", sum(page, count), 5 * count);
    if (variant("result"))
        expect("result", sum(page + count, count), 7 * count);
}
