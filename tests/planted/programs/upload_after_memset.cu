// Zeros are sent to memory that was set to zero: the destination holds them, though nobody sent them. Or it was set to
// something else.
// variants: zero, other
#include "planted.h"

constexpr int count = 16 * 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count);
    int *zeros = pinned_integers(count, 0);
    int *result = pinned_integers(count, 9);
    check(cudaMemsetAsync(device, variant("zero") ? 0 : 1, bytes));
    UPLOAD_ASYNC(device, zeros, bytes); // transfer: zero no-op, other needed
    add_slowly(device, device, count);
    DOWNLOAD_ASYNC(result, device, bytes);
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: required
    expect("sum", sum(result, count), count);
}
