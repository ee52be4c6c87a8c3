// The same bytes are sent to the same place twice and nothing changed them there; or other bytes are sent.
// variants: same, other
#include "planted.h"

constexpr int count = 16 * 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count);
    int *source = pinned_integers(count, 5);
    int *other = pinned_integers(count, 6);
    int *result = pinned_integers(count);
    UPLOAD_ASYNC(device, source, bytes);                           // transfer: needed (first)
    UPLOAD_ASYNC(device, variant("same") ? source : other, bytes); // transfer: same no-op (of first), other needed
    add_slowly(device, device, count);
    DOWNLOAD_ASYNC(result, device, bytes);
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: required
    expect("sum", sum(result, count), (variant("same") ? 6 : 7) * count);
}
