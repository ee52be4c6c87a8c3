// Two contents take turns in one place: each is a repetition of its own first upload. Or each has a place of its own.
// variants: one_place, own_places
#include "planted.h"

constexpr int count = 16 * 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count);
    int *second = variant("one_place") ? device : device_integers(count);
    int *five = pinned_integers(count, 5);
    int *six = pinned_integers(count, 6);
    int *result = pinned_integers(count);
    UPLOAD_ASYNC(device, five, bytes); // transfer: needed (first_five)
    UPLOAD_ASYNC(second, six, bytes);  // transfer: needed (first_six)
    UPLOAD_ASYNC(device, five, bytes); // transfer: one_place repeat (of first_five), own_places no-op (of first_five)
    UPLOAD_ASYNC(second, six, bytes);  // transfer: one_place repeat (of first_six), own_places no-op (of first_six)
    add_slowly(device, second, count);
    DOWNLOAD_ASYNC(result, device, bytes);
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: required
    expect("sum", sum(result, count), 7 * count);
}
