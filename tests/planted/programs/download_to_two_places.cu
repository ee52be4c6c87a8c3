// The same bytes are fetched to two places; or other bytes.
// variants: same, other
#include "planted.h"

constexpr int count = 16 * 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count);
    int *other = device_integers(count);
    int *one = pinned_integers(count);
    int *two = pinned_integers(count);
    fill(device, count, 7);
    fill(other, count, 8);
    DOWNLOAD_ASYNC(one, device, bytes);                           // transfer: needed (first)
    DOWNLOAD_ASYNC(two, variant("same") ? device : other, bytes); // transfer: same copy (of first), other needed
    WAIT(last, cudaStreamSynchronize(nullptr));                   // sync: required
    expect("sum", sum(one, count) + sum(two, count), (variant("same") ? 14 : 15) * count);
}
