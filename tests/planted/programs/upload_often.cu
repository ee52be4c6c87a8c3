// A loop sends an array that never changes, more often than each destination is looked at.
// variants: kept, cleared
#include "planted.h"

constexpr int count = 1024;
constexpr int turns = 40;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count);
    int *used = device_integers(count);
    int *source = pinned_integers(count, 5);
    int *result = pinned_integers(count);
    for (int turn = 0; turn < turns; ++turn) {
        UPLOAD_ASYNC(device, source, bytes); // transfer: kept needed and no-op and unseen, cleared needed and repeat
        add_slowly(used, device, count);
        if (variant("cleared"))
            check(cudaMemsetAsync(device, 0, bytes));
        WAIT(each, cudaStreamSynchronize(nullptr)); // sync: unnecessary
    }
    DOWNLOAD_ASYNC(result, used, bytes);
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: required
    expect("sum", sum(result, count), 6 * count);
}
