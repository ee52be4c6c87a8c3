// The same bytes go to two buffers: a copy on the device would do. Or other bytes go to the second.
// variants: same, other
#include "planted.h"

constexpr int count = 16 * 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *one = device_integers(count);
    int *two = device_integers(count);
    int *source = pinned_integers(count, 5);
    int *other = pinned_integers(count, 6);
    int *result = pinned_integers(count);
    UPLOAD_ASYNC(one, source, bytes);                           // transfer: needed (first)
    UPLOAD_ASYNC(two, variant("same") ? source : other, bytes); // transfer: same copy (of first), other needed
    add_slowly(one, two, count);
    DOWNLOAD_ASYNC(result, one, bytes);
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: required
    expect("sum", sum(result, count), (variant("same") ? 6 : 7) * count);
}
