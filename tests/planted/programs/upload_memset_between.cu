// A memset between two uploads of the same bytes destroys them; or it sets other memory.
// variants: destination, other
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
    check(cudaMemsetAsync(variant("destination") ? device : other, 0, bytes));
    UPLOAD_ASYNC(device, source, bytes); // transfer: destination repeat (of first), other no-op (of first)
    add_slowly(device, device, count);
    DOWNLOAD_ASYNC(result, device, bytes);
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: required
    expect("sum", sum(result, count), 6 * count);
}
