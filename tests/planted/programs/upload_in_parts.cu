// A loop sends an array that never changes in two halves, more often than each half's destination is looked at; or each
// turn sends others to both first.
// variants: halves, whole
#include "planted.h"

constexpr int count = 1024;
constexpr int half = count / 2;
constexpr int turns = 40;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count);
    int *used = device_integers(count);
    int *source = pinned_integers(count, 5);
    int *others = pinned_integers(count, 3);
    int *result = pinned_integers(count);
    for (int turn = 0; turn < turns; ++turn) {
        if (variant("whole"))
            UPLOAD_ASYNC(device, others, bytes); // transfer: halves absent, whole needed and repeat
        for (int place = 0; place < count; place += half) {
            // transfer: halves needed and copy and no-op and unseen, whole needed and copy and repeat
            UPLOAD_ASYNC(device + place, source + place, bytes / 2);
            add_slowly(used + place, device + place, half);
        }
        WAIT(each, cudaStreamSynchronize(nullptr)); // sync: unnecessary
    }
    DOWNLOAD_ASYNC(result, used, bytes);
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: required
    expect("sum", sum(result, count), 6 * count);
}
