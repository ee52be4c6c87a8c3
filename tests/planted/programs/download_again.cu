// The same bytes are fetched to the same place twice, and nobody changed them; or a kernel did.
// variants: same, changed
#include "planted.h"

constexpr int count = 16 * 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count);
    int *host = pinned_integers(count);
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, bytes);       // transfer: needed (first)
    WAIT(one, cudaStreamSynchronize(nullptr)); // sync: required
    expect("sum", sum(host, count), 7 * count);
    if (variant("changed"))
        fill(device, count, 8);
    DOWNLOAD_ASYNC(host, device, bytes); // transfer: same no-op (of first), changed needed
    // The bytes are the same before and after, so that waiting for the second download shows nothing.
    // sync: same required (undecidable), changed required
    WAIT(two, cudaStreamSynchronize(nullptr));
    expect("sum", sum(host, count), (variant("same") ? 7 : 8) * count);
}
