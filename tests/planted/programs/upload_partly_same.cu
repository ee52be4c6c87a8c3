// Of four blocks of 64 KiB one changes between two uploads; or all of them do.
// variants: one, all
#include "planted.h"

constexpr int block = 16 * 1024;
constexpr int count = 4 * block;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count);
    int *source = pinned_integers(count);
    int *changed = pinned_integers(count);
    int *result = pinned_integers(count);
    for (int index = 0; index < count; ++index) {
        source[index] = index;
        changed[index] = variant("all") || index / block == 2 ? index + 1000000 : index;
    }
    UPLOAD_ASYNC(device, source, bytes);  // transfer: needed (first)
    UPLOAD_ASYNC(device, changed, bytes); // transfer: one partial (of first), all needed
    add_slowly(device, device, count);
    DOWNLOAD_ASYNC(result, device, bytes);
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: required
    expect("sum", sum(result, count), sum(changed, count) + count);
}
