// Each iteration of a loop sends another array, all of which hold the same, or each something else.
// variants: same, changing
#include "planted.h"

constexpr int count = 16 * 1024;
constexpr int turns = 4;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count);
    int *used = device_integers(count);
    int *result = pinned_integers(count);
    int *sources[turns];
    for (int turn = 0; turn < turns; ++turn)
        sources[turn] = pinned_integers(count, variant("same") ? 5 : 5 + turn);
    for (int turn = 0; turn < turns; ++turn) {
        UPLOAD_ASYNC(device, sources[turn], bytes); // transfer: same needed and no-op by equal bytes, changing needed
        add_slowly(used, device, count);
    }
    DOWNLOAD_ASYNC(result, used, bytes);
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: required
    expect("sum", sum(result, count), (variant("same") ? 6 : 5 + turns) * count);
}
