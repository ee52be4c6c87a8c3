// What was just downloaded is sent back unchanged to where it came from; or changed in between.
// variants: unchanged, changed
#include "planted.h"

constexpr int count = 16 * 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count);
    int *host = pinned_integers(count);
    int *result = pinned_integers(count);
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, bytes);
    // sync: unchanged unnecessary or conditionally unnecessary, changed required
    WAIT(down, cudaStreamSynchronize(nullptr));
    if (variant("changed"))
        host[0] = 8;
    UPLOAD_ASYNC(device, host, bytes); // transfer: unchanged no-op, changed needed
    add_slowly(device, device, count);
    DOWNLOAD_ASYNC(result, device, bytes);
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: required
    expect("sum", sum(result, count), 8 * count + variant("changed"));
}
