// The second upload sends more of the same array: three of its four blocks were sent before. Or it sends other bytes.
// variants: more, other
#include "planted.h"

constexpr int block = 16 * 1024;
constexpr int count = 4 * block;

void program()
{
    int *device = device_integers(count);
    int *source = pinned_integers(count);
    int *other = pinned_integers(count);
    int *result = pinned_integers(count);
    for (int index = 0; index < count; ++index) {
        source[index] = index;
        other[index] = -index - 1;
    }
    const int *second = variant("more") ? source : other;
    UPLOAD_ASYNC(device, source, 3 * block * sizeof(int)); // transfer: needed (first)
    UPLOAD_ASYNC(device, second, count * sizeof(int));     // transfer: more partial (of first), other needed
    add_slowly(device, device, count);
    DOWNLOAD_ASYNC(result, device, count * sizeof(int));
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: required
    expect("sum", sum(result, count), sum(second, count) + count);
}
