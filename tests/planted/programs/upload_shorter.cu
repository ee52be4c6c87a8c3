// The second upload sends the beginning of what is there already; or the same number of other bytes.
// variants: beginning, other
#include "planted.h"

constexpr int count = 32 * 1024;
constexpr int part = 10 * 1024;

void program()
{
    int *device = device_integers(count);
    int *source = pinned_integers(count);
    int *result = pinned_integers(count);
    for (int index = 0; index < count; ++index)
        source[index] = index;
    const int *second = variant("beginning") ? source : source + count - part;
    UPLOAD_ASYNC(device, source, count * sizeof(int)); // transfer: needed (first)
    UPLOAD_ASYNC(device, second, part * sizeof(int));  // transfer: beginning no-op, other needed
    add_slowly(device, device, count);
    DOWNLOAD_ASYNC(result, device, count * sizeof(int));
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: required
    expect("first", result[0], variant("beginning") ? 1 : count - part + 1);
    expect("last", result[count - 1], count);
}
