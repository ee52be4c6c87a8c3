// The same bytes are fetched from one buffer twice, or from two: the program cannot know what the second one holds.
// variants: one, two
#include "planted.h"

constexpr int count = 16 * 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count), *other = device_integers(count);
    int *host = pinned_integers(count);
    fill(device, count, 7);
    fill(other, count, 7);
    DOWNLOAD_ASYNC(host, device, bytes);       // transfer: needed (first)
    WAIT(one, cudaStreamSynchronize(nullptr)); // sync: required
    expect("sum", sum(host, count), 7 * count);
    DOWNLOAD_ASYNC(host, variant("one") ? device : other, bytes); // transfer: one no-op (of first), two copy (of first)
    // The bytes are the same before and after, so that waiting for the second download shows nothing.
    WAIT(two, cudaStreamSynchronize(nullptr)); // sync: required (undecidable)
    expect("sum", sum(host, count), 7 * count);
}
